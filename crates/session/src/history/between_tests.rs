use super::*;
use crate::diff::{Contents, FileDiff};
use crate::history::between::Place as Where;
use crate::patch::{Executable, Patch, PatchOutcome, Tree as PatchTree};
use proptest::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// What stands under a path for who looks: permissions and content of a file, where a link leads, or a
/// directory.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Thing {
    Directory(u32),
    File(u32, Vec<u8>),
    Link(Vec<u8>),
}

type Things = BTreeMap<String, Thing>;

/// Contents that trees name.
struct Shelf {
    path: PathBuf,
    blobs: Blobs,
    /// What the blobs hold, by their numbers.
    held: HashMap<u64, Vec<u8>>,
}

impl Shelf {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("cofferdam-between-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        let blobs = Blobs::new(path.clone(), 1).unwrap();
        Self { path, blobs, held: HashMap::new() }
    }

    fn keep(&mut self, bytes: &[u8]) -> Content {
        let (blob, file) = self.blobs.make().unwrap();
        rustix::io::pwrite(&file, bytes, 0).unwrap();
        self.held.insert(blob, bytes.to_vec());
        Content { blob, size: bytes.len() as u64 }
    }

    fn entry(&mut self, path: &str, thing: &Thing) -> Entry {
        match thing {
            Thing::Directory(mode) => entry(path, *mode, Node::Directory),
            Thing::File(mode, bytes) => entry(path, *mode, Node::File(self.keep(bytes))),
            Thing::Link(target) => entry(path, 0o777, Node::Link(target.clone())),
        }
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.path).ok();
    }
}

fn entry(path: &str, mode: u32, node: Node) -> Entry {
    Entry {
        path: path.as_bytes().to_vec(),
        node,
        mode,
        user: 1,
        group: 1,
        modified: (1, 0),
        accessed: (1, 0),
        attributes: Vec::new(),
    }
}

fn opaque(mut entry: Entry) -> Entry {
    entry.attributes = vec![(b"user.overlay.opaque".to_vec(), b"y".to_vec())];
    entry
}

fn tree(mut entries: Vec<Entry>) -> Tree {
    entries.push(entry("", 0o755, Node::Directory));
    entries.sort_by(|a, b| super::super::tree::in_order(&a.path, &b.path));
    Tree::new(entries).unwrap()
}

/// What a workspace has, as a backend tells it.
fn told(things: &Things) -> BTreeMap<GuestPath, WorkspaceEntry> {
    let one = |(place, (path, thing)): (usize, (&String, &Thing))| {
        let (kind, mode, size, target, sha256) = match thing {
            Thing::Directory(mode) => (EntryKind::Directory, *mode, 0, None, None),
            Thing::File(mode, bytes) => {
                let sum: [u8; 32] = Sha256::digest(bytes).into();
                (EntryKind::File, *mode, bytes.len() as u64, None, Some(sum))
            }
            Thing::Link(target) => {
                let to = Some(ByteString::from(target.clone()));
                (EntryKind::Link, 0o777, target.len() as u64, to, None)
            }
        };
        let state = FileState { kind, mode, size, target };
        let identity = (1, place as u64);
        (GuestPath::new(path).unwrap(), WorkspaceEntry { state, identity, sha256 })
    };
    things.iter().enumerate().map(one).collect()
}

/// What a backend tells of what was asked for, and nothing else.
fn asked(things: &Things, order: &WorkspaceOrder) -> BTreeMap<GuestPath, WorkspaceEntry> {
    let is_below = |path: &GuestPath| {
        order.below.iter().any(|root| root != path && is_at_or_below(path, root))
    };
    let mut all = told(things);
    all.retain(|path, _| order.at.contains(path) || is_below(path));
    for (path, entry) in &mut all {
        entry.sha256 = entry.sha256.filter(|_| order.hashed.get(path) == Some(&entry.state.size));
    }
    all
}

fn compared(
    shelf: &Shelf,
    things: &Things,
    (from, to): (&Tree, &Tree),
    scope: &[&str],
) -> Vec<Item> {
    let scope: Vec<GuestPath> = scope.iter().map(|path| GuestPath::new(path).unwrap()).collect();
    let between = Between {
        from,
        to,
        scope: &scope,
        blobs: &shelf.blobs,
        workspace: b"/workspace",
        is_copy: false,
    };
    between.changes(&asked(things, &between.wanted().unwrap())).unwrap()
}

fn words(items: &[Item]) -> Vec<String> {
    items.iter().map(|item| format!("{} {}", item.change.kind.name(), item.change.path)).collect()
}

fn file(text: &str) -> Thing {
    Thing::File(0o644, text.as_bytes().to_vec())
}

fn workspace() -> Things {
    let things = [
        ("d", Thing::Directory(0o755)),
        ("d/e", Thing::Directory(0o755)),
        ("d/e/f", file("f\n")),
        ("d/g", file("g\n")),
        ("h", file("h\n")),
    ];
    things.map(|(path, thing)| (path.to_owned(), thing)).into()
}

/// What a layer hides at one point and shows at another one is listed with all that is below.
#[test]
fn what_a_directory_hides_comes_and_goes_with_it() {
    let shelf = Shelf::new();
    let below = workspace();
    let nothing = tree(vec![]);
    let gone = tree(vec![entry("d", 0, Node::Removed)]);
    let anew = tree(vec![opaque(entry("d", 0o755, Node::Directory))]);
    let replaced = tree(vec![entry("d", 0o777, Node::Link(b"h".to_vec()))]);
    let inner = tree(vec![
        entry("d", 0o755, Node::Directory),
        opaque(entry("d/e", 0o755, Node::Directory)),
    ]);
    let check = |from: &Tree, to: &Tree, scope: &[&str], expected: &[&str]| {
        assert_eq!(words(&compared(&shelf, &below, (from, to), scope)), expected);
    };
    let all = ["removed d", "removed d/e", "removed d/e/f", "removed d/g"];
    check(&nothing, &gone, &[], &all);
    let back = ["added d", "added d/e", "added d/e/f", "added d/g"];
    check(&gone, &nothing, &[], &back);
    check(&nothing, &anew, &[], &all[1..]);
    check(&anew, &inner, &[], &["added d/e", "added d/g"]);
    check(&inner, &nothing, &[], &["added d/e/f"]);
    check(&gone, &replaced, &[], &["added d"]);
    let link = ["modified d", "removed d/e", "removed d/e/f", "removed d/g"];
    check(&nothing, &replaced, &[], &link);
    check(&gone, &anew, &[], &["added d"]);
    // Also where only what is below is asked for.
    check(&nothing, &gone, &["d/e"], &all[1..3]);
    check(&gone, &nothing, &["d/e/f", "h"], &["added d/e/f"]);
    check(&nothing, &gone, &["h"], &[]);
    for point in [&nothing, &gone, &anew, &replaced, &inner] {
        check(point, point, &[], &[]);
    }
}

#[test]
fn what_was_copied_and_is_as_before_is_no_change() {
    let mut shelf = Shelf::new();
    let below = workspace();
    let nothing = tree(vec![]);
    let copied = tree(vec![
        shelf.entry("h", &file("h\n")),
        entry("d", 0o755, Node::Directory),
        shelf.entry("d/g", &file("h\n")),
    ]);
    let items = compared(&shelf, &below, (&nothing, &copied), &[]);
    assert_eq!(words(&items), ["modified d/g"]);
    // Written anew with the same bytes, and other permissions.
    let other = tree(vec![
        shelf.entry("h", &Thing::File(0o4755, b"h\n".to_vec())),
        entry("d", 0o755, Node::Directory),
        shelf.entry("d/g", &file("h\n")),
    ]);
    let items = compared(&shelf, &below, (&copied, &other), &[]);
    assert_eq!(words(&items), ["modified h"]);
    let change = &items[0].change;
    assert_eq!(change.after.as_ref().unwrap().mode, 0o755, "set-id bits do not count");
    assert!(change.set_id && change.before.as_ref().unwrap().mode == 0o644);
    assert_eq!(change.standing.name(), "history");
}

#[test]
fn names_of_one_file_count_and_removals_that_share_one_do_not() {
    let mut shelf = Shelf::new();
    let below = workspace();
    let one = shelf.entry("x", &file("x\n"));
    let apart = tree(vec![one.clone(), Entry { path: b"y".to_vec(), ..one.clone() }]);
    let linked = tree(vec![one.clone(), entry("y", 0o644, Node::Again(1))]);
    let items = compared(&shelf, &below, (&apart, &linked), &[]);
    assert_eq!(words(&items), ["modified x", "modified y"]);
    assert_eq!(items[1].change.linked_to, Some(GuestPath::new("x").unwrap()));
    assert_eq!(words(&compared(&shelf, &below, (&linked, &linked), &[])), [""; 0]);
    // The kernel makes one file of all its marks of removal.
    let removed = tree(vec![
        entry("d", 0o755, Node::Directory),
        entry("d/g", 0, Node::Removed),
        entry("h", 0, Node::Again(2)),
    ]);
    let items = compared(&shelf, &below, (&tree(vec![]), &removed), &[]);
    assert_eq!(words(&items), ["removed d/g", "removed h"]);
    let moved = tree(vec![Entry { path: b"z".to_vec(), ..one }]);
    let items = compared(&shelf, &below, (&apart, &moved), &[]);
    assert_eq!(words(&items), ["removed x", "removed y", "added z"]);
    assert!(items[2].change.moved_from.is_some());
}

#[test]
fn a_damaged_content_is_told_and_none_is_made_up() {
    let mut shelf = Shelf::new();
    let one = tree(vec![shelf.entry("x", &file("one\n"))]);
    let other = tree(vec![shelf.entry("x", &file("two\n"))]);
    let cut = std::fs::OpenOptions::new().write(true).open(shelf.path.join("2")).unwrap();
    cut.set_len(1).unwrap();
    let between = Between {
        from: &one,
        to: &other,
        scope: &[],
        blobs: &shelf.blobs,
        workspace: b"/w",
        is_copy: false,
    };
    let refused = between.changes(&BTreeMap::new()).unwrap_err();
    assert!(refused.message.contains("the content of \"x\" is damaged"), "{refused:?}");
    std::fs::remove_file(shelf.path.join("2")).unwrap();
    assert!(between.changes(&BTreeMap::new()).is_err());
}

/// The text of all changes, as the command line prints it.
fn text(shelf: &Shelf, below: &Things, items: Vec<Item>) -> Vec<u8> {
    let content = |path: &GuestPath, place: Option<Where>| match place? {
        Where::Kept(content) => shelf.held.get(&content.blob).cloned(),
        Where::Workspace => match below.get(&path.to_string())? {
            Thing::File(_, bytes) => Some(bytes.clone()),
            Thing::Directory(_) | Thing::Link(_) => None,
        },
    };
    let mut all = Vec::new();
    for Item { change, before, after } in items {
        let (old, new) = (content(&change.path, before), content(&change.path, after));
        let contents = Contents { before: old.as_deref(), after: new.as_deref() };
        all.extend(FileDiff::new(change, contents).text());
    }
    all
}

/// A layer that makes of one tree of things another one. What is the same is in it or not, as it comes.
fn layer(
    shelf: &mut Shelf,
    below: &Things,
    above: &Things,
    picks: &mut impl FnMut() -> bool,
) -> Tree {
    let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
    let mut made_anew: Vec<String> = Vec::new();
    for (path, thing) in above {
        let is_anew = ancestors(path).any(|above| made_anew.contains(&above));
        let is_directory = matches!(thing, Thing::Directory(_));
        let was_directory = matches!(below.get(path), Some(Thing::Directory(_)));
        if !is_anew && below.get(path) == Some(thing) && picks() {
            continue;
        }
        let mut own = shelf.entry(path, thing);
        // It may be made anew though there was one: then it has all that it shows.
        if is_directory && !is_anew && (below.contains_key(path) && (!was_directory || picks())) {
            own = opaque(own);
            made_anew.push(path.clone());
        } else if is_anew && is_directory {
            made_anew.push(path.clone());
        }
        entries.insert(path.clone(), own);
    }
    for path in below.keys().filter(|path| !above.contains_key(*path)) {
        let hides = |way: String| made_anew.contains(&way) || !is_directory_of(above, &way);
        if !ancestors(path).any(hides) {
            entries.insert(path.clone(), entry(path, 0, Node::Removed));
        }
    }
    // A layer has every directory on the way to what it has.
    for path in entries.keys().cloned().collect::<Vec<_>>() {
        for way in ancestors(&path) {
            let Some(thing) = above.get(&way) else { continue };
            entries.entry(way.clone()).or_insert_with(|| shelf.entry(&way, thing));
        }
    }
    tree(entries.into_values().collect())
}

fn is_directory_of(things: &Things, path: &str) -> bool {
    matches!(things.get(path), Some(Thing::Directory(_)))
}

fn ancestors(path: &str) -> impl Iterator<Item = String> + '_ {
    path.match_indices('/').map(|(at, _)| path[..at].to_owned())
}

fn any_thing() -> impl Strategy<Value = Thing> {
    let text = proptest::collection::vec(proptest::sample::select(&["a\n", "b\n", "c"][..]), 0..4)
        .prop_map(|lines| lines.concat().into_bytes());
    let mode = proptest::sample::select(&[0o644, 0o755][..]);
    prop_oneof![
        3 => Just(Thing::Directory(0o755)),
        4 => (mode, text).prop_map(|(mode, text)| Thing::File(mode, text)),
        1 => proptest::sample::select(&["x", "../y"][..]).prop_map(|to| Thing::Link(to.into())),
    ]
}

fn any_things() -> impl Strategy<Value = Things> {
    let name = || proptest::sample::select(&["a", "b", "c d", "\u{e4}"][..]);
    let path = proptest::collection::vec(name(), 1..4).prop_map(|names| names.join("/"));
    proptest::collection::btree_map(path, any_thing(), 0..10).prop_map(|mut things| {
        for path in things.keys().cloned().collect::<Vec<_>>() {
            for way in ancestors(&path) {
                things.insert(way, Thing::Directory(0o755));
            }
        }
        things
    })
}

/// What a patch finds there, and what it makes of that.
fn patched(things: &Things, text: &[u8]) -> Things {
    let mut files: Things = things.clone();
    files.retain(|_, thing| !matches!(thing, Thing::Directory(_)));
    if text.is_empty() {
        return files;
    }
    let place = Shelf::new();
    for (path, thing) in things {
        let at = place.path.join(path);
        // Git knows no directory in which there is nothing.
        if !matches!(thing, Thing::Directory(_)) {
            std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        }
        match thing {
            Thing::Directory(_) => {}
            Thing::File(mode, bytes) => {
                use std::os::unix::fs::PermissionsExt;
                std::fs::write(&at, bytes).unwrap();
                std::fs::set_permissions(&at, std::fs::Permissions::from_mode(*mode)).unwrap();
            }
            Thing::Link(target) => {
                let target = std::str::from_utf8(target).unwrap();
                std::os::unix::fs::symlink(target, &at).unwrap();
            }
        }
    }
    git_apply(&place.path, text);
    let mut found = Things::new();
    gather(&place.path, "", &mut found);
    found
}

fn git_apply(at: &std::path::Path, text: &[u8]) {
    use std::io::Write;
    let mut git = std::process::Command::new("git")
        .args(["apply", "--whitespace=nowarn", "-"])
        .current_dir(at)
        .env("GIT_CEILING_DIRECTORIES", "/")
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    git.stdin.take().unwrap().write_all(text).unwrap();
    let said = git.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&said.stderr);
    assert!(
        said.status.success() || is_only_remarks(text),
        "{error}\n{}",
        String::from_utf8_lossy(text)
    );
}

/// Git takes no text without a section.
fn is_only_remarks(text: &[u8]) -> bool {
    text.split_inclusive(|byte| *byte == b'\n').all(|line| line.starts_with(b"# "))
}

fn gather(at: &std::path::Path, above: &str, found: &mut Things) {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;
    for one in std::fs::read_dir(at).unwrap() {
        let one = one.unwrap();
        let name = one.file_name().into_string().unwrap();
        let path = if above.is_empty() { name } else { format!("{above}/{name}") };
        let about = std::fs::symlink_metadata(one.path()).unwrap();
        if about.is_dir() {
            gather(&one.path(), &path, found);
        } else if about.is_symlink() {
            let to = std::fs::read_link(one.path()).unwrap();
            found.insert(path, Thing::Link(to.as_os_str().as_bytes().to_vec()));
        } else {
            let bytes = std::fs::read(one.path()).unwrap();
            found.insert(path, Thing::File(about.permissions().mode() & 0o777, bytes));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn git_makes_of_one_point_the_other_one(
        below in any_things(),
        points in proptest::collection::vec(any_things(), 2..4),
        picks in proptest::collection::vec(any::<bool>(), 64),
    ) {
        let mut shelf = Shelf::new();
        let mut pick = picks.iter().copied().cycle();
        let mut picks = || pick.next().unwrap();
        let trees: Vec<Tree> =
            points.iter().map(|point| layer(&mut shelf, &below, point, &mut picks)).collect();
        for (from, before) in trees.iter().zip(&points) {
            prop_assert_eq!(words(&compared(&shelf, &below, (from, from), &[])), [""; 0]);
            for (to, after) in trees.iter().zip(&points) {
                let items = compared(&shelf, &below, (from, to), &[]);
                let text = text(&shelf, &below, items);
                let mut files = after.clone();
                files.retain(|_, thing| !matches!(thing, Thing::Directory(_)));
                prop_assert_eq!(patched(before, &text), files, "{}", String::from_utf8_lossy(&text));
            }
        }
    }
}

/// The project's own patches make the same of a diff between points.
#[test]
fn the_projects_own_patches_take_it() {
    let mut shelf = Shelf::new();
    let below = workspace();
    let from = tree(vec![shelf.entry("n", &file("1\n2\n"))]);
    let to = tree(vec![shelf.entry("n", &file("1\nzwei\n")), entry("h", 0, Node::Removed)]);
    let items = compared(&shelf, &below, (&from, &to), &[]);
    let patch = Patch::parse(&text(&shelf, &below, items)).unwrap();
    let node = |content: &str| crate::patch::Node::File {
        content: content.as_bytes().into(),
        executable: Executable::No,
    };
    let path = |text: &str| GuestPath::new(text).unwrap();
    let tree: PatchTree = [(path("n"), node("1\n2\n")), (path("h"), node("h\n"))].into();
    assert_eq!(patch.plan(&tree).report.outcome, PatchOutcome::Fits);
}
