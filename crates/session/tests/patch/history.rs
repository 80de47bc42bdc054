//! Real diffs: of this repository's own history, and of real programs.

use crate::stage::{carried_out, check, files, looked_up};
use cofferdam_core::GuestPath;
use cofferdam_session::patch::{Executable, Node, Patch, PatchOutcome, Tree};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// How many commits are looked at; fewer if a clone has fewer.
const COMMITS: usize = 40;
/// The most mails of one series.
const MAILS: usize = 12;

/// A git repository, with none of this machine's settings.
pub(crate) struct Repository {
    directory: PathBuf,
    /// Whether it goes with this value.
    temporary: bool,
}

impl Repository {
    /// An empty one; none where there is no git.
    pub(crate) fn new() -> Option<Self> {
        let directory = std::env::temp_dir().join(format!(
            "cofferdam-patch-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        std::fs::create_dir(&directory).unwrap();
        let repository = Self { directory, temporary: true };
        match repository.command(&["init", "--quiet", "--bare"]).status() {
            Ok(status) if status.success() => Some(repository),
            Ok(status) => panic!("git init: {status}"),
            Err(error) => {
                println!("skipped: git: {error}");
                None
            }
        }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.args(["-c", "safe.directory=*", "-c", "diff.renameLimit=0"]).args(words);
        command.current_dir(&self.directory).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.env("LC_ALL", "C").stdin(Stdio::null());
        command
    }

    fn output(&self, words: &[&str]) -> Vec<u8> {
        let output = self.command(words).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {words:?}: {error}");
        output.stdout
    }

    /// Makes a commit of each tree, under its name.
    pub(crate) fn store(&self, trees: &[(&str, &Tree)]) {
        let mut stream = Vec::new();
        for (name, tree) in trees {
            write!(stream, "reset refs/heads/{name}\n\ncommit refs/heads/{name}\n").unwrap();
            stream.extend_from_slice(b"committer A <a@example.org> 0 +0000\ndata 0\ndeleteall\n");
            for (path, node) in *tree {
                let (mode, content) = match node {
                    Node::File { content, executable: Executable::No } => ("100644", content),
                    Node::File { content, executable: Executable::Yes } => ("100755", content),
                    Node::Link { target } => ("120000", target),
                    Node::Directory { .. } | Node::Other => continue,
                };
                writeln!(stream, "M {mode} inline {}", quoted(path)).unwrap();
                writeln!(stream, "data {}", content.len()).unwrap();
                stream.extend_from_slice(content);
                stream.push(b'\n');
            }
        }
        let mut command = self.command(&["fast-import", "--quiet", "--force"]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(&stream).unwrap();
        assert!(child.wait().unwrap().success());
    }

    pub(crate) fn diff(&self, options: &[&str], before: &str, after: &str) -> Vec<u8> {
        let mut words = vec!["diff", "--text", "--no-ext-diff", "--no-textconv"];
        words.extend_from_slice(options);
        self.output(&[&words[..], &[before, after, "--"]].concat())
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        if self.temporary {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}

/// A path as fast-import reads it.
fn quoted(path: &GuestPath) -> String {
    let escaped = path.as_bytes().iter().map(|byte| format!("\\{byte:03o}"));
    format!("\"{}\"", escaped.collect::<String>())
}

/// The files of commits, each content read once.
struct Trees<'r> {
    repository: &'r Repository,
    contents: BTreeMap<String, Arc<[u8]>>,
}

impl Trees<'_> {
    /// The tree of a commit; submodules are left out.
    fn of(&mut self, commit: &str) -> Tree {
        let listed = self.repository.output(&["ls-tree", "-r", "-z", commit]);
        let entries: Vec<(&str, &str, &[u8])> = listed
            .split(|byte| *byte == 0)
            .filter(|entry| !entry.is_empty())
            .map(|entry| {
                let tab = entry.iter().position(|byte| *byte == b'\t').unwrap();
                let head = std::str::from_utf8(&entry[..tab]).unwrap();
                let [mode, _, id] = head.split(' ').collect::<Vec<_>>()[..] else {
                    panic!("{head}")
                };
                (mode, id, &entry[tab + 1..])
            })
            .filter(|(mode, ..)| *mode != "160000")
            .collect();
        self.read(entries.iter().map(|(_, id, _)| *id));
        let node = |mode: &str, content: Arc<[u8]>| match mode {
            "100755" => Node::File { content, executable: Executable::Yes },
            "120000" => Node::Link { target: content },
            _ => Node::File { content, executable: Executable::No },
        };
        let named = entries.iter().map(|(mode, id, name)| {
            (GuestPath::new(name).unwrap(), node(mode, self.contents[*id].clone()))
        });
        named.collect()
    }

    /// Reads the contents that were not read before.
    fn read<'i>(&mut self, ids: impl Iterator<Item = &'i str>) {
        let wanted: BTreeSet<&str> = ids.filter(|id| !self.contents.contains_key(*id)).collect();
        let mut command = self.repository.command(&["cat-file", "--batch"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        for id in wanted {
            writeln!(input, "{id}").unwrap();
            let mut head = String::new();
            output.read_line(&mut head).unwrap();
            let length: usize = head.trim_end().rsplit(' ').next().unwrap().parse().unwrap();
            let mut content = vec![0; length + 1];
            output.read_exact(&mut content).unwrap();
            content.pop();
            self.contents.insert(id.to_owned(), content.into());
        }
        drop(input);
        assert!(child.wait().unwrap().success());
    }
}

fn leads(text: &[u8], before: &Tree, after: &Tree, what: &str) {
    let patch = Patch::parse(text).unwrap_or_else(|error| panic!("{what}: {}", error.message));
    let plan = patch.plan(&looked_up(&patch, before));
    assert_eq!(plan.report.outcome, PatchOutcome::Fits, "{what}: {:#?}", plan.report);
    assert!(carried_out(&plan, before) == *after, "{what}: the trees differ");
    let hunks = plan.report.files.iter().flat_map(|file| &file.hunks);
    assert!(hunks.clone().all(|hunk| hunk.offset == Some(0) && !hunk.recounted), "{what}");
    let back = patch.reversed().unwrap();
    let plan = back.plan(&looked_up(&back, after));
    assert_eq!(plan.report.outcome, PatchOutcome::Fits, "{what}, back: {:#?}", plan.report);
    assert!(carried_out(&plan, after) == *before, "{what}, back: the trees differ");
}

#[test]
fn the_diffs_of_this_repositorys_history_apply_and_go_back() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let repository = Repository { directory: root, temporary: false };
    let listed = repository
        .command(&["rev-list", "--first-parent", "-n", &COMMITS.to_string(), "HEAD"])
        .output();
    let commits = match listed {
        Ok(output) if output.status.success() => String::from_utf8(output.stdout).unwrap(),
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return println!("skipped: git: {why}");
        }
        Err(error) => return println!("skipped: git: {error}"),
    };
    let commits: Vec<&str> = commits.lines().rev().collect();
    if commits.len() < 2 {
        return println!("skipped: git: this clone has no history");
    }
    let mut trees = Trees { repository: &repository, contents: BTreeMap::new() };
    let all: Vec<Tree> = commits.iter().map(|commit| trees.of(commit)).collect();
    let mut applied = 0;
    let mut look = |from: usize, to: usize, options: &[&str]| {
        let text = repository.diff(options, commits[from], commits[to]);
        if !text.is_empty() {
            let what = format!("{}..{} {options:?}", commits[from], commits[to]);
            leads(&text, &all[from], &all[to], &what);
            applied += 1;
        }
    };
    for at in 1..commits.len() {
        look(at - 1, at, &["-M", "-C"]);
    }
    for distance in [7, commits.len() - 1] {
        for from in (0..commits.len().saturating_sub(distance)).step_by(distance.max(1)) {
            look(from, from + distance, &["-M", "-C", "--find-copies-harder"]);
            look(from + distance, from, &["--no-renames", "-U1"]);
        }
    }
    println!("{applied} diffs of {} commits", commits.len());
    assert!(applied > 0);
}

#[test]
fn the_mails_of_a_series_apply_one_on_the_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let repository = Repository { directory: root, temporary: false };
    let words = ["rev-list", "--parents", "--first-parent", "-n", "400", "HEAD"];
    let commits = match repository.command(&words).output() {
        Ok(output) if output.status.success() => String::from_utf8(output.stdout).unwrap(),
        _ => return println!("skipped: git: there is no history here"),
    };
    // The mails of what was merged would apply to what it was made from, and not one on the other.
    let commits: Vec<Vec<&str>> = commits.lines().map(|line| line.split(' ').collect()).collect();
    let runs = commits.split(|commit| commit.len() != 2).map(|run| &run[..run.len().min(MAILS)]);
    let Some([newest, .., oldest]) = runs.max_by_key(|run| run.len()) else {
        return println!("skipped: git: this clone has no two commits one on the other");
    };
    let (last, first) = (newest[0], oldest[1]);
    let range = format!("{first}..{last}");
    let mails = repository.output(&["format-patch", "--stdout", "--text", &range]);
    let mut trees = Trees { repository: &repository, contents: BTreeMap::new() };
    let (before, after) = (trees.of(first), trees.of(last));
    let patch = Patch::parse(&mails).unwrap();
    let plan = patch.plan(&looked_up(&patch, &before));
    assert_eq!(plan.report.outcome, PatchOutcome::Fits, "{:#?}", plan.report);
    assert!(carried_out(&plan, &before) == after, "the trees differ");
    let back = patch.reversed().unwrap();
    let plan = back.plan(&looked_up(&back, &after));
    assert_eq!(plan.report.outcome, PatchOutcome::Fits, "{:#?}", plan.report);
    assert!(carried_out(&plan, &after) == before, "the trees differ");
}

#[test]
fn what_diff_writes_is_applied() {
    let name = format!("cofferdam-diff-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    let old = [("changed", "1\n2\n3\n"), ("gone", "1\n"), ("d/end", "1")];
    let new = [("changed", "1\n2\nthree\n"), ("made here", "1\n"), ("d/end", "1\n")];
    for (side, contents) in [("old", old), ("new", new)] {
        for (name, content) in contents {
            let file = directory.join(side).join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, content).unwrap();
        }
    }
    let output = Command::new("diff").args(["-ruN", "old", "new"]).current_dir(&directory).output();
    std::fs::remove_dir_all(&directory).unwrap();
    match output {
        Ok(output) => drop(check(output.stdout, &files(&old), &files(&new))),
        Err(error) => println!("skipped: diff: {error}"),
    }
}
