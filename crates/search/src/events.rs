//! Events of a watch whose names match a pattern.

use crate::glob::set;
use cofferdam_core::Result;
use cofferdam_core::files::FileEvent;
use globset::GlobSet;
use std::path::Path;

/// Which events of a watch are wanted.
#[derive(Debug, Clone)]
pub struct EventFilter(GlobSet);

impl EventFilter {
    /// Wants events one of whose paths matches one of these patterns, which mean what those of
    /// [`Glob`](crate::Glob) do. A path is matched from the workspace on.
    pub fn new(patterns: &[String], ignore_case: bool) -> Result<Self> {
        set(patterns, ignore_case).map(Self)
    }

    /// Whether this is wanted. What is about the watch itself always is.
    pub fn wants(&self, event: &FileEvent) -> bool {
        match event {
            FileEvent::Ready { .. } | FileEvent::Overflow | FileEvent::Unwatched { .. } => true,
            FileEvent::Created { .. }
            | FileEvent::Modified { .. }
            | FileEvent::Attributes { .. }
            | FileEvent::Removed { .. }
            | FileEvent::Renamed { .. } => {
                event.paths().any(|path| self.0.is_match(Path::new(path.as_os_str())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_wanted_for_either_of_its_names() {
        let patterns = ["src/*.rs".to_owned(), "**/*.toml".to_owned()];
        let filter = EventFilter::new(&patterns, false).unwrap();
        let modified = |path: &str| filter.wants(&FileEvent::Modified { path: path.into() });
        assert!(modified("src/a.rs") && modified("Cargo.toml") && modified("a/b/c.toml"));
        assert!(!modified("src/a/b.rs") && !modified("a.rs") && !modified("src/a.RS"));
        let renamed = |from: &str, to: &str| {
            let (from, to) = (from.into(), to.into());
            filter.wants(&FileEvent::Renamed { from, to, directory: false })
        };
        assert!(renamed("x", "src/a.rs") && renamed("src/a.rs", "x") && !renamed("x", "y"));
        let failure = cofferdam_core::files::Failure {
            why: cofferdam_core::files::Why::Denied,
            detail: String::new(),
            errno: 13,
        };
        let unwatched = FileEvent::Unwatched { path: "x".into(), failure };
        assert!(filter.wants(&FileEvent::Overflow) && filter.wants(&unwatched));
        assert!(EventFilter::new(&["[".to_owned()], false).is_err());
    }
}
