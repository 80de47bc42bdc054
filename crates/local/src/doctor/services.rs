//! Facts about devices and services that other backends, or later parts, use.

use super::{Fact, State};
use crate::host::HostFacts;
use crate::session_uid::UidRange;
use cofferdam_guestd::Redirection;
use rustix::fs::Access;
use std::os::unix::net::UnixStream;
use std::path::Path;

pub(super) fn tun() -> Fact {
    const WITHOUT: &str = "a transparent way out would need another path than a tun device";
    device("tun", "/dev/net/tun", "a transparent way out can be built on it", WITHOUT)
        .unwrap_or_else(|fact| {
            let remedy = match fact.state {
                State::Forbidden => "sudo chmod 0666 /dev/net/tun (its usual mode)",
                State::Ok | State::Missing | State::Unknown => "sudo modprobe tun",
            };
            fact.remedy(remedy)
        })
}

pub(super) fn kvm() -> Fact {
    const WITHOUT: &str = "a microVM backend is not possible; the local backend needs none";
    device("kvm", "/dev/kvm", "a microVM backend is possible", WITHOUT).unwrap_or_else(|fact| {
        let remedy = match fact.state {
            State::Forbidden => "sudo usermod -aG kvm $USER, then log in again",
            State::Ok | State::Missing | State::Unknown => {
                "sudo modprobe kvm_intel || sudo modprobe kvm_amd (in a virtual machine, switch \
                 nested virtualisation on)"
            }
        };
        fact.remedy(remedy)
    })
}

/// The fact that a device can be opened for reading and writing, or the fact that it cannot.
fn device(name: &str, path: &str, with: &str, without: &str) -> Result<Fact, Fact> {
    if !Path::new(path).exists() {
        return Err(Fact::new(name, State::Missing, format!("{path} is not there"), without));
    }
    match rustix::fs::access(path, Access::READ_OK | Access::WRITE_OK) {
        Ok(()) => Ok(Fact::new(name, State::Ok, format!("{path} can be used"), with)),
        Err(error) => {
            let found = format!("{path} cannot be used ({error})");
            Err(Fact::new(name, State::Forbidden, found, without))
        }
    }
}

/// Tried in a network namespace of its own: no program `nft` is needed.
pub(super) fn nftables() -> Fact {
    const NAME: &str = "nftables";
    let Redirection { works, v6 } = Redirection::try_out();
    match works {
        Ok(()) => {
            let found = if v6 { "the kernel redirects" } else { "the kernel redirects IPv4" };
            let consequence = "with --egress programs get out through the gate without any setting";
            Fact::new(NAME, State::Ok, found, consequence)
        }
        Err(why) => Fact::new(
            NAME,
            State::Missing,
            why,
            "with --egress only programs that honour HTTP_PROXY or ALL_PROXY get out",
        )
        .remedy("sudo modprobe -a nf_tables nft_redir nft_ct"),
    }
}

/// What a gate, which reads hostile bytes on the host, can be confined by.
pub(super) fn gate(facts: &HostFacts) -> Fact {
    const NAME: &str = "gate";
    const WEAKER: &str = "a way out (--egress) works; its gate is confined by fewer layers";
    if facts.landlock_abi == 0 {
        let found = "it can open whatever files its user can: the kernel has no Landlock";
        return Fact::new(NAME, State::Missing, found, WEAKER)
            .remedy("Start the kernel with lsm=landlock,… among its parameters.");
    }
    let ids = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    if facts.is_root() && !maps(&ids, UidRange::GATES.at(0)) {
        let found = "it stays user 0, without capabilities: its own user is not in this namespace";
        return Fact::new(NAME, State::Missing, found, WEAKER)
            .remedy("Start Cofferdam outside of the container, or as an ordinary user.");
    }
    let found = match facts.is_root() {
        true => "a user that owns nothing, by Landlock and a system call filter",
        false => "by Landlock and a system call filter, without capabilities",
    };
    let consequence = "the gate of a way out opens no file of yours, and runs nothing";
    Fact::new(NAME, State::Ok, found, consequence)
}

/// Whether an id is there, by the text of a namespace's map.
fn maps(text: &str, id: u32) -> bool {
    text.lines().any(|line| {
        let numbers = line.split_whitespace().map_while(|number| number.parse::<u64>().ok());
        let mut numbers = numbers.fuse();
        let (first, _, count) = (numbers.next(), numbers.next(), numbers.next());
        let (Some(first), Some(count)) = (first, count) else { return false };
        (first..first.saturating_add(count)).contains(&u64::from(id))
    })
}

pub(super) fn docker() -> Fact {
    const NAME: &str = "docker";
    const WITHOUT: &str = "a Docker backend is not possible; the local backend needs none";
    let host = "/var/run/docker.sock";
    match UnixStream::connect(host) {
        Ok(_) => {
            Fact::new(NAME, State::Ok, format!("{host} answers"), "a Docker backend is possible")
        }
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Fact::new(NAME, State::Forbidden, format!("{host}: {error}"), WITHOUT)
                .remedy("sudo usermod -aG docker $USER, then log in again (this gives root)")
        }
        Err(error) => {
            let program = ["/usr/bin/docker", "/usr/local/bin/docker"]
                .into_iter()
                .any(|path| Path::new(path).exists());
            let (found, remedy) = match program {
                true => (format!("{host}: {error}"), "sudo systemctl start docker"),
                false => ("docker is not installed".to_owned(), "sudo apt install docker.io"),
            };
            Fact::new(NAME, State::Missing, found, WITHOUT).remedy(remedy)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake;

    #[test]
    fn an_id_is_there_where_a_line_of_the_map_has_it() {
        let check =
            |text: &str, is_there| assert_eq!(maps(text, 2_100_066_000), is_there, "{text}");
        check("         0          0 4294967295\n", true);
        check("         0     100000      65536\n", false);
        check("0 100000 65536\n2100066000 1 1\n", true);
        check("2100066001 1 1\n", false);
        check("", false);
        check("0 x 9999999999\n", false);
    }

    #[test]
    fn what_does_not_hold_a_gate_is_said_with_its_remedy() {
        let with = |landlock_abi| gate(&HostFacts { landlock_abi, ..fake::host(1000) });
        assert_eq!(with(6).state, State::Ok);
        let without = with(0);
        assert_eq!(without.state, State::Missing);
        assert!(without.found.contains("no Landlock") && without.remedy.is_some(), "{without:?}");
    }
}
