//! Reads back from the host what a sandbox's first process has become.

use crate::kernel_text::kernel_text;
use crate::plan::{Planned, Tier};
use cofferdam_core::{Error, ErrorKind, Result};

/// Confirms from outside that process 1 has given up what the plan says. What it says itself counts
/// for nothing here.
pub fn verify(pid: i32, planned: &Planned) -> Result<()> {
    let path = format!("/proc/{pid}/status");
    let status = kernel_text(&path).map_err(|error| {
        Error::new(ErrorKind::SetupFailed, "the sandbox ended while it was looked at").source(error)
    })?;
    check(&status, planned)
}

fn check(status: &str, planned: &Planned) -> Result<()> {
    let mut expected = vec![("NoNewPrivs", "1".to_owned()), ("Seccomp", "2".to_owned())];
    if let Some(set) = planned.plan.kept_capabilities() {
        let set = format!("{set:016x}");
        expected.extend(["CapPrm", "CapEff"].map(|name| (name, set.clone())));
        // An ordinary user of the host cannot lower the bound; no_new_privs makes it worthless.
        if planned.tier == Tier::Namespaces {
            expected.push(("CapBnd", set));
        }
    }
    for (name, value) in expected {
        let found = field(status, name).unwrap_or("nothing");
        if found != value {
            return Err(Error::new(
                ErrorKind::SetupFailed,
                format!("the sandbox's first process has {name} {found}, not {value}"),
            ));
        }
    }
    let levels = field(status, "NSpid").map_or(0, |pids| pids.split_ascii_whitespace().count());
    match planned.tier {
        Tier::Namespaces if levels < 2 => Err(Error::new(
            ErrorKind::SetupFailed,
            "the sandbox's first process is in the host's process namespace",
        )),
        Tier::Namespaces | Tier::Landlock => Ok(()),
    }
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let status = "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\nNSpid:\t7\t1\n";
        assert_eq!(field(status, "Seccomp"), Some("2"));
        assert_eq!(field(status, "NSpid"), Some("7\t1"));
        assert_eq!(field(status, "NoNewPrivs"), None);
    }
}
