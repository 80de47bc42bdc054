//! What a watch is told of files in memory.

use super::tree::{Node, Tree};
use crate::fake::Fault;
use crate::files::{EventSource, FileEvent, Watch};
use crate::{Error, ErrorKind, Result};
use async_trait::async_trait;
use cofferdam_wire::ByteString;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

type Place = Vec<Vec<u8>>;

/// Somebody who watches.
#[derive(Debug)]
pub(super) struct Watcher {
    pub(super) places: Vec<Place>,
    pub(super) depth: usize,
    pub(super) tells: UnboundedSender<FileEvent>,
    /// The directories that were there when the watch began.
    pub(super) known: BTreeSet<Place>,
}

/// What a watcher hears, until the sandbox is gone.
pub(super) struct FakeWatch {
    pub(super) hears: UnboundedReceiver<FileEvent>,
    pub(super) gone: Pin<Box<dyn Future<Output = ()> + Send>>,
}

#[async_trait]
impl EventSource for FakeWatch {
    async fn next(&mut self) -> Result<Vec<FileEvent>> {
        let gone = || Error::new(ErrorKind::Unavailable, "the sandbox is gone");
        tokio::select! {
            biased;
            event = self.hears.recv() => event.map(|event| vec![event]).ok_or_else(gone),
            () = &mut self.gone => Err(gone()),
        }
    }
}

impl Watcher {
    fn wants(&self, place: &Place, faults: &BTreeSet<Fault>) -> bool {
        let is_in = |of: &Place| {
            place.strip_prefix(of.as_slice()).is_some_and(|below| below.len() <= self.depth)
        };
        let above = place.split_last().map(|(_, above)| above.to_vec()).unwrap_or_default();
        let misses = faults.contains(&Fault::FilesWatchMissesNew) && !self.known.contains(&above);
        self.places.iter().any(is_in) && !misses
    }

    /// Tells what is other than before. Answers whether anybody listens.
    pub(super) fn tell(&self, before: &BTreeMap<Place, Node>, tree: &Tree, renames: bool) -> bool {
        let wanted = |place: &&Place| self.wants(place, &tree.faults);
        let gone: Vec<&Place> =
            before.keys().filter(|p| !tree.nodes.contains_key(*p)).filter(wanted).collect();
        let new: Vec<&Place> =
            tree.nodes.keys().filter(|p| !before.contains_key(*p)).filter(wanted).collect();
        let mut events = Vec::new();
        match (gone.as_slice(), new.as_slice()) {
            ([from, ..], [to, ..]) if renames => events.push(FileEvent::Renamed {
                from: path(from),
                to: path(to),
                directory: is_directory(tree.nodes.get(*to)),
            }),
            (gone, new) => {
                events.extend(gone.iter().map(|place| FileEvent::Removed {
                    path: path(place),
                    directory: is_directory(before.get(*place)),
                }));
                events.extend(new.iter().map(|place| FileEvent::Created {
                    path: path(place),
                    directory: is_directory(tree.nodes.get(*place)),
                }));
            }
        }
        for (place, node) in tree.nodes.iter().filter(|(place, _)| wanted(place)) {
            let Some(old) = before.get(place) else { continue };
            if old.bytes() != node.bytes() {
                events.push(FileEvent::Modified { path: path(place) });
            }
            if old.mode != node.mode {
                let directory = is_directory(Some(node));
                events.push(FileEvent::Attributes { path: path(place), directory });
            }
        }
        events.into_iter().all(|event| self.tells.send(event).is_ok()) && !self.tells.is_closed()
    }
}

/// How many levels below a place an order is about.
pub(super) fn depth(order: &Watch) -> usize {
    usize::try_from(order.depth).unwrap_or(usize::MAX)
}

fn path(place: &Place) -> ByteString {
    place.join(&b'/').into()
}

fn is_directory(node: Option<&Node>) -> bool {
    node.is_some_and(Node::is_directory)
}
