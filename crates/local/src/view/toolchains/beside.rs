//! What programs of a toolchain need of the directories beside theirs, wherever it was unpacked.
//!
//! An entry `X/bin` of `PATH` says nothing of `X`: it may be a home directory, or `~/.local`, whose `share`
//! has keyrings in it. So something that nothing but a toolchain has must be there, at a place of its own,
//! and then the directories that its programs read are shown, by name.

use super::Search;
use crate::view::lookup::Found;
use std::path::Path;

/// A toolchain, as it is unpacked.
struct Layout {
    /// What all of these are there below `X`, and nowhere else.
    marks: &'static [&'static str],
    /// What its programs read below `X`, besides `bin`.
    needs: &'static [&'static str],
    what: &'static str,
}

const LAYOUTS: &[Layout] = &[
    Layout { marks: &["lib/rustlib"], needs: &["lib", "libexec"], what: "Rust" },
    Layout {
        marks: &["src/runtime", "pkg/tool"],
        needs: &["src", "pkg", "lib", "VERSION", "go.env"],
        what: "Go",
    },
    Layout { marks: &["lib/node_modules/npm"], needs: &["lib", "include"], what: "Node" },
    Layout {
        marks: &["lib/modules", "release"],
        needs: &["lib", "conf", "include", "jmods", "release"],
        what: "Java",
    },
    Layout { marks: &["lib/clang"], needs: &["lib", "libexec", "include"], what: "Clang" },
    Layout { marks: &["lib/gcc"], needs: &["lib", "lib64", "libexec", "include"], what: "GCC" },
    Layout { marks: &["pyvenv.cfg"], needs: &["lib", "include", "pyvenv.cfg"], what: "Python" },
];

impl Search<'_> {
    /// Shows what the programs of this directory need beside it, if it is the `bin` of a toolchain.
    pub(super) fn beside(&mut self, programs: &Found) {
        let Some(root) = programs.path.strip_suffix("/bin").filter(|root| !root.is_empty()) else {
            return;
        };
        if self.forbids(root).is_some() {
            return;
        }
        for layout in LAYOUTS {
            let is_there = |mark: &&str| Path::new(&format!("{root}/{mark}")).exists();
            if !layout.marks.iter().all(is_there) {
                continue;
            }
            for name in layout.needs {
                let path = format!("{root}/{name}");
                // What is a link leads elsewhere, and nobody said that this is to be shown.
                let Some(found) = self.find(&path).filter(|found| found.path == path) else {
                    continue;
                };
                if self.forbids(&path).is_none() {
                    let what = format!("{} needs it beside its programs on PATH", layout.what);
                    self.show(&found, &path, &what);
                }
            }
        }
    }
}
