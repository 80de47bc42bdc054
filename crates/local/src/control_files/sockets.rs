//! Sockets of programs of the host that stand in the workspace.
//!
//! Whoever may write to the node of a socket may connect to it, whatever network namespace they are in, and
//! neither a read-only mount nor Landlock before its ABI 9 keeps them from it. So a socket that somebody
//! listens at is covered. One that nobody listens at is left alone: a server inside removes its own before
//! it makes it anew, and could not remove what is mounted on.
//!
//! LIMIT: a socket that comes while the sandbox lives is not covered.

use super::Search;
use crate::kernel_path::through;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat, openat2};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

impl Search<'_> {
    /// Notes which of these are sockets that somebody listens at.
    pub(super) fn listening(&mut self, sockets: Vec<Vec<u8>>) {
        // The placeholders of another sandbox here are names of one socket, which is asked once.
        let mut asked = BTreeMap::new();
        for path in sockets {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let rules = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            let path = path.as_slice();
            let node = openat2(self.workspace, path, flags, Mode::empty(), rules);
            if !node.is_ok_and(|node| is_listened_at(&node, &mut asked)) {
                continue;
            }
            match std::str::from_utf8(path) {
                Ok(path) => self.found.sockets.push(path.to_owned()),
                Err(_) => {
                    let path = String::from_utf8_lossy(path).into_owned();
                    let why = "a program of the host listens there, and its name is not UTF-8";
                    self.unseen(path, why);
                }
            }
        }
    }
}

/// What was answered at sockets that were asked, by device and inode: who listens does so at all names.
type Asked = BTreeMap<(u64, u64), bool>;

/// Whether somebody listens at what may be a socket.
fn is_listened_at(node: &OwnedFd, asked: &mut Asked) -> bool {
    let Ok(stat) = rustix::fs::fstat(node) else { return false };
    if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
        return false;
    }
    let identity = (stat.st_dev, stat.st_ino);
    *asked.entry(identity).or_insert_with(|| answers(node, &stat))
}

/// Whether a connection comes about, or would if it were of another kind.
fn answers(node: &OwnedFd, stat: &Stat) -> bool {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let Ok(own) = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
    else {
        return true;
    };
    let Ok(address) = SocketAddrUnix::new(through(node)) else { return true };
    match rustix::net::connect(&own, &address) {
        Err(Errno::CONNREFUSED) => false,
        // Of somebody else's, nothing can be reached from inside either; one's own can be opened up.
        Err(Errno::ACCESS) => stat.st_uid == rustix::process::geteuid().as_raw(),
        Ok(()) | Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use crate::control_files::{find, find_sockets};
    use crate::test_directory::TestDirectory;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    #[test]
    fn where_only_sockets_are_covered_it_is_said_where_none_was_looked_for() {
        let tree = TestDirectory::new("socket-reasons");
        let path = |name: &str| tree.path().join(name);
        (0..260).for_each(|n| fs::create_dir_all(path(&format!("r{n:03}/.git"))).unwrap());
        // What is a matter of control files alone is none here, nor is their number.
        fs::write(path("r000/.git/config"), "").unwrap();
        fs::hard_link(path("r000/.git/config"), path("other")).unwrap();
        let open = || fs::File::open(tree.path()).unwrap();
        let all = || find(open()).unwrap().reasons();
        assert_eq!(all().len(), 2, "the control: {:?}", all());
        let told = || find_sockets(open()).unwrap().reasons_of_sockets();
        assert_eq!(told(), Vec::<String>::new());
        fs::create_dir_all(path(&"d/".repeat(70))).unwrap();
        let deep = "files: \"d/d/d/d/d/d/d/d\" is not protected: what is in it deeper than 64 levels is not \
                    looked into; remove that";
        assert_eq!(told(), [deep]);
        fs::remove_dir_all(path("d")).unwrap();
        if rustix::process::geteuid().is_root() {
            return;
        }
        fs::create_dir(path("closed")).unwrap();
        fs::set_permissions(path("closed"), fs::Permissions::from_mode(0o300)).unwrap();
        let (closed, all) = (told(), all());
        fs::set_permissions(path("closed"), fs::Permissions::from_mode(0o700)).unwrap();
        assert!(closed.len() == 1 && closed[0].contains("closed"), "{closed:?}");
        assert!(all.contains(&closed[0]), "{all:?}");
    }

    #[test]
    fn all_names_of_a_socket_have_one_answer_and_those_of_another_have_another() {
        let tree = TestDirectory::new("socket-names");
        let path = |name: &str| tree.path().join(name);
        let silent = UnixListener::bind(path("a-silent")).unwrap();
        drop(silent);
        let _listener = UnixListener::bind(path("b-heard")).unwrap();
        for (of, name) in
            [("a-silent", "c-silent"), ("b-heard", "d-heard"), ("a-silent", "e-silent")]
        {
            fs::hard_link(path(of), path(name)).unwrap();
        }
        let found = find_sockets(fs::File::open(tree.path()).unwrap()).unwrap();
        let mut sockets = found.sockets.clone();
        sockets.sort();
        assert_eq!(sockets, ["b-heard", "d-heard"]);
    }
}
