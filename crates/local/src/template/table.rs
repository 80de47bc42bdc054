//! The templates of one backend, by what they are made from.

use super::Template;
use crate::plan::Split;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_wire::plan::Op;
use cofferdam_wire::template::Shared;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// How many templates there are at a time. Each is two small processes. Callers rarely differ in
/// more than the profile; whoever does gets sandboxes that are built from nothing.
pub(crate) const MAX_TEMPLATES: usize = 8;

/// The templates that stand.
#[derive(Debug, Default)]
pub(crate) struct Templates(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    kept: Kept<Template>,
    host: Option<HostMounts>,
    /// Set when one could not be made: then none can be on this host.
    has_failed: bool,
}

/// What is kept of each kind, and how many there are.
#[derive(Debug)]
struct Kept<T> {
    /// The one that was used last comes last.
    current: Vec<Entry<T>>,
    /// Those that somebody has, current or not.
    all: Vec<Weak<T>>,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self { current: Vec::new(), all: Vec::new() }
    }
}

#[derive(Debug)]
struct Entry<T> {
    shared: Shared,
    /// What the host's paths were when it was made: device and inode. One that was replaced since
    /// has another inode, because the template keeps the old one in use.
    sources: Vec<(u64, u64)>,
    template: Arc<T>,
}

/// Tells when something was mounted or unmounted on the host.
#[derive(Debug)]
struct HostMounts(File);

impl HostMounts {
    fn watch() -> Option<Self> {
        let watch = Self(File::open("/proc/self/mountinfo").ok()?);
        // The first answer is about what was before.
        watch.have_changed();
        Some(watch)
    }

    fn have_changed(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut file = [PollFd::new(&self.0, PollFlags::PRI)];
        let [file] = match poll(&mut file, Some(&now)) {
            Ok(_) => file,
            Err(_) => return true,
        };
        file.revents().intersects(PollFlags::PRI | PollFlags::ERR)
    }
}

impl Templates {
    /// The template for what this plan shares with others, made if there is none.
    pub(crate) fn find(&self, program: &[u8], split: &Split) -> Result<Arc<Template>> {
        // ORDER: before anything is made of it, so that what is replaced meanwhile is noticed.
        let sources = sources(&split.shared)?;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.forget_stale();
        if known.has_failed || known.host.is_none() {
            return Err(unavailable("this host has no templates"));
        }
        if let Some(template) = known.kept.find(&split.shared, &sources) {
            return Ok(template);
        }
        if !known.kept.make_room() {
            return Err(unavailable("all templates are in use"));
        }
        let made = Template::start(program, &split.shared);
        known.has_failed = made.is_err();
        let template = Arc::new(made?);
        known.kept.keep(Entry {
            shared: split.shared.clone(),
            sources,
            template: Arc::clone(&template),
        });
        Ok(template)
    }
}

impl Known {
    /// Forgets those that ended, and all of them when the host's mounts have changed. Sandboxes that
    /// came from one keep it.
    fn forget_stale(&mut self) {
        match &self.host {
            Some(host) if !host.have_changed() => {
                self.kept.current.retain(|entry| entry.template.is_there());
            }
            Some(_) => self.kept.current.clear(),
            None => self.host = HostMounts::watch(),
        }
    }
}

impl<T> Kept<T> {
    fn find(&mut self, shared: &Shared, sources: &[(u64, u64)]) -> Option<Arc<T>> {
        let is_same = |entry: &Entry<T>| entry.sources == sources && entry.shared == *shared;
        let entry = self.current.remove(self.current.iter().position(is_same)?);
        let template = Arc::clone(&entry.template);
        self.current.push(entry);
        Some(template)
    }

    fn keep(&mut self, entry: Entry<T>) {
        self.all.push(Arc::downgrade(&entry.template));
        self.current.push(entry);
    }

    /// Ends the one that was not used for longest, of those that no sandbox came from. Answers whether
    /// there is room.
    fn make_room(&mut self) -> bool {
        self.all.retain(|template| template.strong_count() > 0);
        if self.all.len() < MAX_TEMPLATES {
            return true;
        }
        let is_idle = |entry: &Entry<T>| Arc::strong_count(&entry.template) == 1;
        match self.current.iter().position(is_idle) {
            Some(position) => {
                drop(self.current.remove(position));
                true
            }
            None => false,
        }
    }
}

fn unavailable(what: &str) -> Error {
    Error::new(ErrorKind::Unavailable, what.to_owned())
}

/// What the paths of the host that the template shows are now.
fn sources(shared: &Shared) -> Result<Vec<(u64, u64)>> {
    let binds = shared
        .tree
        .iter()
        .filter_map(|step| if let Op::Bind(bind) = &step.op { Some(bind) } else { None });
    binds
        .map(|bind| {
            let found = std::fs::symlink_metadata(&bind.source).map_err(|error| {
                Error::new(ErrorKind::Io, format!("look at {:?}", bind.source)).source(error)
            })?;
            Ok((found.dev(), found.ino()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_directory::TestDirectory;
    use cofferdam_wire::plan::{Access, Bind, Depth, Need, Owner, Step};

    fn shared(source: &str) -> Shared {
        let bind = Bind {
            source: source.to_owned(),
            path: "/x".to_owned(),
            access: Access::ReadOnly,
            depth: Depth::All,
            devices: false,
            owner: Owner::Same,
            identity: None,
        };
        let step = Step { op: Op::Bind(bind), why: String::new(), need: Need::Required };
        Shared { tree: vec![step], ..Shared::default() }
    }

    fn keep(kept: &mut Kept<()>, name: &str) -> Arc<()> {
        assert!(kept.make_room());
        let template = Arc::new(());
        let entry =
            Entry { shared: shared(name), sources: Vec::new(), template: Arc::clone(&template) };
        kept.keep(entry);
        template
    }

    #[test]
    fn templates_are_few_and_the_one_least_used_goes() {
        let mut kept = Kept::default();
        for number in 0..MAX_TEMPLATES {
            drop(keep(&mut kept, &number.to_string()));
        }
        assert!(kept.find(&shared("0"), &[]).is_some());
        drop(keep(&mut kept, "new"));
        assert_eq!(kept.current.len(), MAX_TEMPLATES);
        assert!(kept.find(&shared("1"), &[]).is_none(), "it was used least");
        assert!(kept.find(&shared("0"), &[]).is_some());
    }

    #[test]
    fn a_template_in_use_is_not_ended_for_another() {
        let mut kept = Kept::default();
        let names: Vec<String> = (0..MAX_TEMPLATES).map(|number| number.to_string()).collect();
        let used: Vec<_> = names.iter().map(|name| keep(&mut kept, name)).collect();
        assert!(!kept.make_room());
        // One that is forgotten counts for as long as a sandbox lives that came from it.
        kept.current.clear();
        assert!(!kept.make_room());
        drop(used);
        assert!(kept.make_room());
    }

    #[test]
    fn what_was_replaced_on_the_host_is_noticed() {
        let directory = TestDirectory::new("template-sources");
        let path = directory.path().join("ld.so.cache");
        std::fs::write(&path, "old").unwrap();
        let held = File::open(&path).unwrap();
        let split = shared(path.to_str().unwrap());
        let before = sources(&split).unwrap();
        std::fs::write(&path, "written in place").unwrap();
        assert_eq!(sources(&split).unwrap(), before);
        std::fs::write(directory.path().join("new"), "new").unwrap();
        std::fs::rename(directory.path().join("new"), &path).unwrap();
        assert_ne!(sources(&split).unwrap(), before);
        drop(held);
        std::fs::remove_file(&path).unwrap();
        assert!(sources(&split).is_err());
    }
}
