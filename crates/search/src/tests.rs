//! Searches over files in memory, and over a worker that lies.

use crate::{
    Case, FileHits, Found, Glob, Grep, LineKind, MAX_LINE_BYTES, Reason, Scope, Search, Searched,
    Want,
};
use cofferdam_core::fake::FakeBackend;
use cofferdam_core::files::{
    Answer, Body, Entry, EntryKind, FileService, MAX_DEPTH, Reply, Request, Written,
};
use cofferdam_core::{
    Backend, Caller, Command, ErrorKind, Files, NoGate, ProcessId, Result, SandboxId, Spec,
    Workspace, collect,
};
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Files in memory with this content, and these links.
async fn files(content: &[(&str, &[u8])], links: &[&str]) -> Files {
    let backend = FakeBackend::new();
    let spec = Spec::new(Workspace::Private, Caller::default());
    let sandbox = backend.create(&SandboxId::new("s1").unwrap(), &spec).await.unwrap();
    let guest = backend.open(&sandbox, Arc::new(NoGate)).await.unwrap();
    for (number, link) in links.iter().enumerate() {
        let id = ProcessId::new(format!("p{number}")).unwrap();
        let link = Command::new(id, [format!("link={link}")]);
        collect(guest.spawn(&link).await.unwrap(), 100).await.unwrap();
    }
    let files = guest.files().await.unwrap();
    for (path, bytes) in content {
        let _: Written = files.write(path, bytes).await.unwrap();
    }
    files
}

async fn globbed(files: &Files, order: &Glob) -> (Vec<String>, Searched) {
    let mut found = Vec::new();
    let mut each = |one: Found| {
        found.push(one.path.to_string());
        ControlFlow::Continue(())
    };
    let searched = Search::new(files.clone()).glob(order, &mut each).await.unwrap();
    (found, searched)
}

async fn grepped(files: &Files, order: &Grep) -> (Vec<FileHits>, Searched) {
    let mut found = Vec::new();
    let mut each = |one: FileHits| {
        found.push(one);
        ControlFlow::Continue(())
    };
    let searched = Search::new(files.clone()).grep(order, &mut each).await.unwrap();
    (found, searched)
}

fn pattern(text: &str) -> Grep {
    Grep { patterns: vec![text.to_owned()], ..Grep::default() }
}

/// Matches as `path:line:text`, lines of context with dashes.
fn shown(hits: &[FileHits]) -> Vec<String> {
    let mut all = Vec::new();
    for file in hits {
        for line in &file.lines {
            let text = String::from_utf8_lossy(&line.bytes);
            let sign = if matches!(line.kind, LineKind::Match { .. }) { ':' } else { '-' };
            all.push(format!("{}{sign}{}{sign}{text}", file.path, line.number));
        }
    }
    all
}

fn paths(hits: &[FileHits]) -> Vec<String> {
    hits.iter().map(|file| file.path.to_string()).collect()
}

const TREE: [(&str, &[u8]); 12] = [
    (".git/config", b"needle"),
    (".gitignore", b"*.log\n/target/\n!keep.log\n"),
    (".hidden/a.rs", b"needle"),
    ("a.log", b"needle"),
    ("keep.log", b"needle"),
    ("src/.gitignore", b"gen/\n"),
    ("src/deep/b.rs", b"one\ntwo needle\nthree\n"),
    ("src/gen/c.rs", b"needle"),
    ("src/main.rs", b"needle\n"),
    ("src/old.log", b"needle"),
    ("target/d.rs", b"needle"),
    ("vendor/target/e.rs", b"needle"),
];

#[tokio::test]
async fn names_match_by_directories_and_rules() {
    let files = files(&TREE, &["link:src", "out:/etc"]).await;
    let check = async |pattern: &str, scope: Scope, expected: &[&str]| {
        let order = Glob { patterns: vec![pattern.to_owned()], scope, ..Glob::default() };
        let (found, searched) = globbed(&files, &order).await;
        assert_eq!(found, expected, "{pattern}");
        assert!(searched.left_out.is_empty(), "{searched:?}");
    };
    let all = Scope::default;
    check("*.rs", all(), &[]).await;
    check("**/*.rs", all(), &["src/deep/b.rs", "src/main.rs", "vendor/target/e.rs"]).await;
    check("src/*", all(), &["src/deep", "src/main.rs"]).await;
    check("{link,out,keep.log}", all(), &["keep.log", "link", "out"]).await;
    let hidden = Scope { hidden: true, ..all() };
    check("**/a.*", hidden.clone(), &[".hidden/a.rs"]).await;
    check(".git/**", Scope { ignored: true, ..hidden }, &[]).await;
    let ignored = Scope { ignored: true, ..all() };
    check("**/*.log", ignored, &["a.log", "keep.log", "src/old.log"]).await;
    let below = |path: &str| Scope { paths: vec![path.into()], ..all() };
    check("*.rs", below("src"), &["src/main.rs"]).await;
    // What stands above the place that is searched still holds.
    check("*", below("/workspace/src/"), &["src/deep", "src/main.rs"]).await;
    check("*.rs", below("src/main.rs"), &["src/main.rs"]).await;
    check("*.rs", below("link"), &["link/main.rs"]).await;
    check("c.rs", below("src/gen"), &["src/gen/c.rs"]).await;
    let only = Scope { include: vec!["*.rs".into()], exclude: vec!["deep".into()], ..all() };
    check("**", only, &["src", "src/main.rs", "vendor", "vendor/target", "vendor/target/e.rs"])
        .await;
}

#[tokio::test]
async fn kinds_case_and_number_of_names_are_as_asked() {
    let files = files(&TREE, &["link:src"]).await;
    let all = || Glob { patterns: vec!["**".into()], ..Glob::default() };
    let order = Glob { kinds: vec![EntryKind::Link], ..all() };
    assert_eq!(globbed(&files, &order).await.0, ["link"]);
    let order = Glob { patterns: vec!["SRC/MAIN.*".into()], ignore_case: true, ..all() };
    assert_eq!(globbed(&files, &order).await.0, ["src/main.rs"]);
    let (found, searched) = globbed(&files, &Glob { max_matches: Some(2), ..all() }).await;
    assert_eq!(found, ["keep.log", "link"]);
    assert_eq!(searched.left_out[0].reason, Reason::TooManyMatches);
    assert_eq!(searched.left_out[0].first, "src".into());
    let scope = Scope { max_visited: 3, ..Scope::default() };
    let (_, searched) = globbed(&files, &Glob { scope, ..all() }).await;
    assert_eq!(searched.left_out[0].reason, Reason::TooManyNames);
    for patterns in [vec![], vec!["a{".to_owned()], vec!["x".to_owned(); 1001]] {
        let order = Glob { patterns, ..Glob::default() };
        let search = Search::new(files.clone());
        let refused = search.glob(&order, &mut |_| ControlFlow::Continue(())).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Usage, "{refused:?}");
    }
}

#[tokio::test]
async fn lines_are_found_with_those_around_them() {
    let files = files(&TREE, &["link:src", "out:/etc"]).await;
    let (hits, searched) = grepped(&files, &pattern("needle")).await;
    let expected = [
        "keep.log:1:needle",
        "src/deep/b.rs:2:two needle",
        "src/main.rs:1:needle",
        "vendor/target/e.rs:1:needle",
    ];
    assert_eq!(shown(&hits), expected);
    assert_eq!((searched.matches, searched.files), (4, 4));
    assert_eq!(hits[1].lines[0].kind, LineKind::Match { column: 5 });
    let mut order = Grep { before: 1, after: 1, ..pattern("^two") };
    let around = ["src/deep/b.rs-1-one", "src/deep/b.rs:2:two needle", "src/deep/b.rs-3-three"];
    assert_eq!(shown(&grepped(&files, &order).await.0), around);
    order.scope.paths = vec!["src/main.rs".into(), "a.log".into(), "link".into()];
    order.patterns = vec!["needle$".into()];
    let named = grepped(&files, &order).await.0;
    assert_eq!(paths(&named), ["src/main.rs", "a.log", "link/deep/b.rs", "link/main.rs"]);
}

#[tokio::test]
async fn patterns_mean_what_their_options_say() {
    let text = b"Needle\nneedles\na.b\naxb\n\xff needle \xfe\n".as_slice();
    let files = files(&[("f", text)], &[]).await;
    let check = async |order: Grep, expected: &[u64]| {
        let (hits, _) = grepped(&files, &order).await;
        let numbers: Vec<u64> =
            hits.iter().flat_map(|file| file.lines.iter().map(|line| line.number)).collect();
        assert_eq!(numbers, expected, "{order:?}");
    };
    check(pattern("needle"), &[2, 5]).await;
    check(Grep { case: Case::Insensitive, ..pattern("NEEDLE") }, &[1, 2, 5]).await;
    check(Grep { case: Case::Smart, ..pattern("needle") }, &[1, 2, 5]).await;
    check(Grep { case: Case::Smart, ..pattern("Needle") }, &[1]).await;
    check(Grep { word: true, ..pattern("needle") }, &[5]).await;
    check(pattern("a.b"), &[3, 4]).await;
    check(Grep { fixed: true, ..pattern("a.b") }, &[3]).await;
    check(Grep { patterns: vec!["axb".into(), "s$".into()], ..Grep::default() }, &[2, 4]).await;
    let search = Search::new(files.clone());
    for bad in ["(", "a\nb", "(a{1000}){1000}"] {
        let refused = search.grep(&pattern(bad), &mut |_| ControlFlow::Continue(())).await;
        assert_eq!(refused.unwrap_err().kind, ErrorKind::Usage, "{bad}");
    }
}

#[tokio::test]
async fn binary_files_are_named_and_their_bytes_are_not_shown() {
    let files = files(&[("b", b"x needle\n\0\nneedle\n"), ("t", b"needle\n")], &[]).await;
    let (hits, _) = grepped(&files, &pattern("needle")).await;
    assert!(hits[0].is_binary && hits[0].lines.is_empty() && hits[0].matches == 1);
    assert!(!hits[1].is_binary);
    let (hits, _) = grepped(&files, &Grep { binary_as_text: true, ..pattern("needle") }).await;
    assert_eq!((hits[0].is_binary, hits[0].lines.len()), (false, 2));
}

#[tokio::test]
async fn of_a_file_with_more_lines_than_are_held_those_that_are_told_are_counted() {
    let many = b"x\n".repeat(300_000);
    let files = files(&[("many", &many[..]), ("one", b"x\n")], &[]).await;
    let (hits, searched) = grepped(&files, &pattern("x")).await;
    assert!(hits[0].is_cut && hits[0].matches < 300_000);
    assert_eq!(hits[0].matches, hits[0].lines.len() as u64);
    assert_eq!(searched.matches, hits[0].matches + 1);
    assert_eq!(searched.left_out[0].reason, Reason::MatchesOfOneFile);
}

#[tokio::test]
async fn what_a_limit_leaves_out_is_told() {
    let long = [&vec![b'x'; 10_000][..], b" needle\n"].concat();
    let many = b"needle\n".repeat(10);
    let content = [("a", &many[..]), ("b", &many), ("c", b"needle\n"), ("d", &long), ("e", b"no")];
    let files = files(&content, &[]).await;
    let cut = Grep { max_matches_of_one: Some(3), after: 1, before: 1, ..pattern("needle") };
    let (hits, searched) = grepped(&files, &cut).await;
    assert_eq!((hits[0].matches, hits[0].lines.len(), hits[0].is_cut), (3, 3, true));
    assert!(!hits[2].is_cut);
    assert_eq!(
        (searched.left_out[0].reason, searched.left_out[0].count),
        (Reason::MatchesOfOneFile, 2)
    );
    assert_eq!(
        (hits[3].lines[0].bytes.len(), hits[3].lines[0].left_out_bytes),
        (MAX_LINE_BYTES, 10_007 - MAX_LINE_BYTES as u64)
    );
    let (hits, searched) =
        grepped(&files, &Grep { max_matches: Some(12), ..pattern("needle") }).await;
    assert_eq!((paths(&hits), searched.matches), (vec!["a".to_owned(), "b".to_owned()], 12));
    // The rest of one file, and three files.
    assert_eq!(
        (searched.left_out[0].reason, searched.left_out[0].count),
        (Reason::TooManyMatches, 4)
    );
    let small = Grep { max_file_bytes: 100, ..pattern("needle") };
    let (_, searched) = grepped(&files, &small).await;
    let left = &searched.left_out[0];
    assert_eq!((left.reason, left.count, &left.first), (Reason::TooLarge, 1, &"d".into()));
    let (hits, searched) = grepped(&files, &Grep { want: Want::Count, ..pattern("needle") }).await;
    assert_eq!(hits.iter().map(|file| file.matches).collect::<Vec<_>>(), [10, 10, 1, 1]);
    assert!(hits.iter().all(|file| file.lines.is_empty()) && searched.left_out.is_empty());
    let (hits, _) = grepped(&files, &Grep { want: Want::Name, ..pattern("needle") }).await;
    assert_eq!(paths(&hits), ["a", "b", "c", "d"]);
    // The control: without a limit nothing is left out.
    let (_, searched) = grepped(&files, &pattern("needle")).await;
    assert_eq!((searched.matches, searched.left_out.len()), (22, 0));
}

#[tokio::test]
async fn names_are_bytes_and_depth_has_an_end() {
    let odd = OsStr::from_bytes(b"d/\xff\n\x1b[2J");
    let files = files(&[], &[]).await;
    files.write(odd, b"needle").await.unwrap();
    let (hits, _) = grepped(&files, &pattern("needle")).await;
    assert_eq!(hits[0].path.as_bytes(), odd.as_bytes());
    let deep = "d/".repeat(MAX_DEPTH + 1) + "f";
    files.write(&deep, b"needle").await.unwrap();
    let (hits, searched) = grepped(&files, &pattern("needle")).await;
    assert_eq!(hits.len(), 1);
    assert_eq!(searched.left_out[0].reason, Reason::TooDeep);
}

#[tokio::test]
async fn who_has_enough_breaks_off() {
    let files = files(&TREE, &[]).await;
    let mut count = 0;
    let mut each = |_: FileHits| {
        count += 1;
        ControlFlow::Break(())
    };
    Search::new(files).grep(&pattern("needle"), &mut each).await.unwrap();
    assert_eq!(count, 1);
}

/// Says always the same about every directory.
struct Liar {
    name: &'static [u8],
    has_more: bool,
}

#[async_trait::async_trait]
impl FileService for Liar {
    async fn call(&self, request: &Request, _: Body<'_>) -> Result<Reply> {
        let entry = |path: &[u8]| Entry {
            path: path.to_vec().into(),
            kind: EntryKind::Directory,
            size: u64::MAX,
            mode: 0,
            modified_ms: 0,
            links: 1,
            target: None,
        };
        if let Request::Stat { .. } = request {
            return Ok(Reply { answer: Answer::Entry(entry(b"")), entries: Vec::new() });
        }
        let next = self.has_more.then(|| "x".into());
        let entries = if self.name == b"-" { Vec::new() } else { vec![entry(self.name)] };
        Ok(Reply { answer: Answer::Listed { next }, entries })
    }

    async fn open(&self) -> Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_worker_that_lies_about_names_is_not_followed_for_ever() {
    let search = |liar| Search::new(Files::new(Arc::new(liar)));
    let scope = Scope { ignored: true, max_visited: 1000, ..Scope::default() };
    let order = Glob { patterns: vec!["**".into()], scope, ..Glob::default() };
    let mut each = |_: Found| ControlFlow::Continue(());
    for name in ["", ".", "..", "a/b", "../../etc"] {
        let liar = Liar { name: name.as_bytes(), has_more: false };
        let error = search(liar).glob(&order, &mut each).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Protocol, "{name}");
    }
    let empty = search(Liar { name: b"-", has_more: true }).glob(&order, &mut each).await;
    assert_eq!(empty.unwrap_err().kind, ErrorKind::Protocol);
    for has_more in [false, true] {
        let endless = search(Liar { name: b"d", has_more }).glob(&order, &mut each).await.unwrap();
        let reasons: Vec<Reason> = endless.left_out.iter().map(|left| left.reason).collect();
        let expected = if has_more { Reason::TooManyNames } else { Reason::TooDeep };
        assert!(reasons.contains(&expected), "{reasons:?}");
    }
}
