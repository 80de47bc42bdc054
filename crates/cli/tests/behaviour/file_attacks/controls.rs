//! The same by a program that takes no care: each must get through.

use super::ground::{Ground, SECRET};

/// A trap, and what walks into it.
pub(super) struct Control {
    pub(super) trap: &'static str,
    /// A line of shell.
    pub(super) careless: &'static str,
    /// Fails unless it got through.
    pub(super) check: fn(&Ground<'_>, &str),
}

pub(super) const CONTROLS: &[Control] = &[
    Control { trap: "ln -s /tmp/out/secret t", careless: "cat t", check: tells },
    Control { trap: "ln -s /tmp/out t", careless: "cat t/secret", check: tells },
    Control {
        trap: "ln -s /tmp/out/secret t",
        careless: "echo changed >t; cat /tmp/out/secret",
        check: changes,
    },
    Control {
        trap: "ln -s /tmp/out t",
        careless: "echo changed >>t/new; cat /tmp/out/new",
        check: changes,
    },
    Control {
        trap: "ln -s /tmp/out/secret t",
        careless: "chmod 777 t; stat -c 'changed %a' /tmp/out/secret | sed 's/ 777//'",
        check: changes,
    },
    Control {
        trap: "ln -s /tmp/out t",
        careless: "rm -r t/dir; test -e /tmp/out/dir || echo changed",
        check: changes,
    },
    Control {
        trap: "mkfifo t",
        careless: "timeout 0.3 cat t; test $? = 124 && echo changed",
        check: changes,
    },
    Control { trap: "host:ln ../outside/secret t", careless: "cat t", check: tells },
];

fn tells(ground: &Ground<'_>, careless: &str) {
    let said = ground.inside(careless);
    assert!(said.contains(SECRET), "{careless} tells nothing: {said}");
}

fn changes(ground: &Ground<'_>, careless: &str) {
    let said = ground.inside(careless);
    assert_eq!(said, "changed\n", "{careless} changes nothing");
}
