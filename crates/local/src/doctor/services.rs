//! Facts about devices and services that other backends, or later parts, use.

use super::{Fact, State};
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
