//! Whose the other end of a connection on this machine is.

use rustix::io::Errno;
use std::io;
use std::net::{IpAddr, SocketAddr};
use tokio::sync::OnceCell;

/// Where the kernel lists connections over TCP.
const LISTS: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
/// The columns of a line that say the near address, the far one, whose the socket is, and its inode.
const COLUMNS: [usize; 4] = [1, 2, 7, 9];

/// The two ends of a connection over TCP, of which it is looked once whose the other one is.
#[derive(Debug)]
pub(crate) struct Ends {
    peer: SocketAddr,
    /// This end, where it is a loopback address: of others nobody knows.
    here: Option<SocketAddr>,
    is_own: OnceCell<bool>,
}

impl Ends {
    /// Of whom it is not known yet.
    pub(crate) fn new(peer: SocketAddr, here: Option<SocketAddr>) -> Self {
        let here = here.filter(|here| here.ip().is_loopback());
        Self { peer, here, is_own: OnceCell::new() }
    }

    /// Whether the other end belongs to the user of this process, or to root, who may do as that user anyway. Where the
    /// kernel could not be asked, the next one who wants to know asks again.
    pub(crate) async fn is_own(&self) -> Result<bool, Errno> {
        let Some(here) = self.here else { return Ok(false) };
        let peer = self.peer;
        let look = async || {
            let looked = tokio::task::spawn_blocking(move || user_of(kernels, peer, here)).await;
            let user = looked.map_err(|_| Errno::IO)?;
            let user = user.map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
            let own = rustix::process::geteuid().as_raw();
            Ok(user.is_some_and(|user| user == own || user == 0))
        };
        self.is_own.get_or_try_init(look).await.copied()
    }
}

fn kernels(list: &str) -> io::Result<String> {
    std::fs::read_to_string(list)
}

/// Whose the other end is, by what is read of the kernel's lists.
fn user_of(
    read: impl Fn(&str) -> io::Result<String>,
    peer: SocketAddr,
    here: SocketAddr,
) -> io::Result<Option<u32>> {
    let mut failed = None;
    for list in LISTS {
        match read(list) {
            Ok(list) => {
                if let Some(user) = listed(&list, peer, here) {
                    return Ok(Some(user));
                }
            }
            // Without IPv6 there is no list of it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => failed = Some(error),
        }
    }
    failed.map_or(Ok(None), Err)
}

/// Whose the socket is that leads from `near` to `far`, in a list of the kernel's.
fn listed(list: &str, near: SocketAddr, far: SocketAddr) -> Option<u32> {
    let (near, far) = (columns(near), columns(far));
    let is = |column: &str, address: &[String]| address.iter().any(|one| one == column);
    list.lines().skip(1).find_map(|line| {
        let mut columns = line.split_ascii_whitespace();
        let mut before = 0;
        let mut next = |column: usize| {
            let skipped = column - std::mem::replace(&mut before, column + 1);
            columns.nth(skipped)
        };
        let [from, to, user, inode] = COLUMNS.map(&mut next);
        let is_it = is(from?, &near) && is(to?, &far);
        // HOSTILE: a socket that nobody holds any more is listed as root's, with no inode.
        (is_it && inode? != "0").then_some(user?.parse().ok()?)
    })
}

/// What a column may say of this address: bytes in hexadecimal, four at a time in the order of this machine,
/// and the port.
fn columns(address: SocketAddr) -> Vec<String> {
    let words = |bytes: &[u8]| -> String {
        let (words, _) = bytes.as_chunks::<4>();
        words.iter().map(|word| format!("{:08X}", u32::from_ne_bytes(*word))).collect()
    };
    let port = address.port();
    let said = |bytes: &[u8]| format!("{}:{port:04X}", words(bytes));
    match address.ip() {
        IpAddr::V4(ip) => vec![said(&ip.octets()), said(&ip.to_ipv6_mapped().octets())],
        IpAddr::V6(ip) => vec![said(&ip.octets())],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[tokio::test]
    async fn the_other_end_is_found_as_long_as_somebody_holds_it() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let here = listener.local_addr().unwrap();
            let client = TcpStream::connect(here).unwrap();
            let (_ours, peer) = listener.accept().unwrap();
            let user_of = |peer| user_of(kernels, peer, here).unwrap();
            assert_eq!(user_of(peer), Some(rustix::process::geteuid().as_raw()));
            let ends = Ends::new(peer, Some(here));
            assert_eq!(ends.is_own().await, Ok(true), "{address}");
            assert_eq!(user_of(here), None, "{address}");
            drop(client);
            assert_eq!(user_of(peer), None, "{address}");
            // As it was when it was looked, and of an address that others reach nothing is.
            assert_eq!(ends.is_own().await, Ok(true), "{address}");
            let elsewhere = Some("192.0.2.1:80".parse().unwrap());
            assert_eq!(Ends::new(peer, elsewhere).is_own().await, Ok(false));
        }
    }

    #[test]
    fn a_list_that_cannot_be_read_says_nothing_of_whose_an_end_is() {
        let (peer, here) = ("[::1]:1".parse().unwrap(), "[::1]:2".parse().unwrap());
        let read = |first: Errno, second: Errno| {
            let why = move |list: &str| if list == LISTS[0] { first } else { second };
            user_of(move |list| Err(why(list).into()), peer, here)
        };
        for (first, second) in [(Errno::MFILE, Errno::NOENT), (Errno::NOENT, Errno::IO)] {
            assert!(read(first, second).is_err(), "{first:?} {second:?}");
        }
        assert_eq!(read(Errno::NOENT, Errno::NOENT).unwrap(), None, "the control");
    }

    #[test]
    fn only_a_socket_that_is_held_says_whose_it_is() {
        let line = |user: &str, inode: &str| {
            format!(
                "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  \
                 timeout inode\n   0: 0100007F:D431 0100007F:1F90 01 00000000:00000000 00:00000000 \
                 00000000  {user}        0 {inode} 1 0000000000000000 20 4 30 10 -1\n"
            )
        };
        let (near, far) = ("127.0.0.1:54321".parse().unwrap(), "127.0.0.1:8080".parse().unwrap());
        // As machines of this byte order write it.
        if cfg!(target_endian = "little") {
            assert_eq!(listed(&line("1000", "4711"), near, far), Some(1000));
            assert_eq!(listed(&line("0", "0"), near, far), None);
            assert_eq!(listed(&line("1000", "4711"), far, near), None);
        }
        assert_eq!(listed("", near, far), None);
        assert_eq!(listed("head\nshort line\n", near, far), None);
    }
}
