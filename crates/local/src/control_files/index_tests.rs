use super::*;
use std::path::PathBuf;
use std::process::Command;

/// An index of these entries, of a version, with sums of this many bytes.
pub(super) fn index(version: u32, sum: usize, entries: &[(u32, &[u8])]) -> Vec<u8> {
    with_extensions(version, sum, entries, &|_| Vec::new())
}

fn with_extensions(
    version: u32,
    sum: usize,
    entries: &[(u32, &[u8])],
    extensions: &dyn Fn(&[usize]) -> Vec<u8>,
) -> Vec<u8> {
    let mut out = b"DIRC".to_vec();
    out.extend(version.to_be_bytes());
    out.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
    let (mut before, mut places): (&[u8], Vec<usize>) = (b"", Vec::new());
    for (mode, name) in entries {
        let at = out.len();
        places.push(at);
        out.extend([0; 24]);
        out.extend(mode.to_be_bytes());
        out.extend([0; 12]);
        out.extend(vec![7; sum]);
        let len = u16::try_from(name.len().min(LENGTH)).unwrap();
        out.extend(len.to_be_bytes());
        if version == 4 {
            let same = before.iter().zip(*name).take_while(|(a, b)| a == b).count();
            out.push(u8::try_from(before.len() - same).unwrap());
            out.extend(&name[same..]);
            out.push(0);
            before = name;
        } else {
            out.extend(*name);
            out.push(0);
            while !(out.len() - at).is_multiple_of(8) {
                out.push(0);
            }
        }
    }
    places.push(out.len());
    out.extend(extensions(&places));
    out.extend(vec![9; sum]);
    out
}

fn extension(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let len = u32::try_from(content.len()).unwrap().to_be_bytes();
    [&name[..], &len, content].concat()
}

fn word(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap().to_be_bytes()
}

const FILE: u32 = 0o100_644;

#[test]
fn names_that_git_would_refuse_lead_outside() {
    for version in 2..=4 {
        for sum in SUM_BYTES {
            let judge = |name: &[u8]| judge(&index(version, sum, &[(FILE, b"a"), (FILE, name)]));
            let long = [b'x'; 5000];
            for good in [&b"b"[..], b"a/b", b".gitignore", b"b..", b"...", b"a.git/b", &long] {
                let shown = String::from_utf8_lossy(good);
                assert_eq!(judge(good), Names::Inside, "{version} {sum} {shown}");
            }
            for bad in [
                &b"../x"[..],
                b"/etc/x",
                b".git/hooks/pre-commit",
                b"a/.git",
                b"a/.GIT/config",
                b"a//b",
                b"a/./b",
                b"a/..",
                b"git~1/x",
                b"b/",
            ] {
                let shown = String::from_utf8_lossy(bad);
                assert_eq!(judge(bad), Names::Outside, "{version} {sum} {shown}");
            }
        }
    }
    // A repository in the place of another one, and a directory that is not shown.
    assert_eq!(judge(&index(2, 20, &[(0o160_000, b".git/evil")])), Names::Outside);
    assert_eq!(judge(&index(2, 20, &[(0o160_000, b"../elsewhere")])), Names::Outside);
    assert_eq!(judge(&index(2, 20, &[(0o040_000, b"src/")])), Names::Inside);
    assert_eq!(judge(&index(2, 20, &[(0o040_000, b"../")])), Names::Outside);
}

#[test]
fn what_git_may_read_otherwise_is_not_believed() {
    let entries: &[(u32, &[u8])] = &[(FILE, b"a"), (FILE, b"a../x"), (FILE, b"b")];
    let parts = |at: [usize; 2], counts: [usize; 2]| {
        let pairs = [word(at[0]), word(counts[0]), word(at[1]), word(counts[1])].concat();
        extension(b"IEOT", &[&word(1)[..], &pairs].concat())
    };
    let made = |extensions: &dyn Fn(&[usize]) -> Vec<u8>| {
        judge(&with_extensions(4, 20, entries, extensions))
    };
    assert_eq!(made(&|_| Vec::new()), Names::Inside);
    // Whoever begins at the second entry takes its name as it is written: `../x`.
    assert_eq!(made(&|at| parts([at[0], at[1]], [1, 2])), Names::Outside);
    assert_eq!(made(&|at| parts([at[0], at[2]], [2, 1])), Names::Inside);
    assert_eq!(made(&|at| parts([at[0], at[2]], [2, 2])), Names::Unknown);
    assert_eq!(made(&|at| parts([at[0], at[1] + 1], [1, 2])), Names::Unknown);
    let end = |at: usize| extension(b"EOIE", &[&word(at)[..], &[0; 20]].concat());
    assert_eq!(made(&|at| end(at[3])), Names::Inside);
    assert_eq!(made(&|at| end(at[2])), Names::Unknown);
    // A length that is not the name's.
    let mut said = index(2, 20, &[(FILE, b"abcdef")]);
    said[12 + 40 + 20 + 1] = 3;
    assert_eq!(judge(&said), Names::Unknown);
}

#[test]
fn what_is_damaged_is_unknown_and_ends() {
    let whole = index(4, 20, &[(FILE, b"a"), (FILE, b"a/b"), (0o160_000, b"c")]);
    assert_eq!(judge(&whole), Names::Inside);
    for at in 0..whole.len() {
        assert_eq!(judge(&whole[..at]), Names::Unknown, "{at}");
        for bit in 0..8 {
            let mut bad = whole.clone();
            bad[at] ^= 1 << bit;
            judge(&bad);
        }
    }
    let mut many = b"DIRC\0\0\0\x02\xff\xff\xff\xff".to_vec();
    many.extend([0; 100]);
    assert_eq!(judge(&many), Names::Unknown);
}

#[test]
fn what_is_remembered_of_conflicts_stays_inside() {
    assert!(remembers_inside(b""));
    assert!(remembers_inside(b"0123\ta/b\x004567\tc\0"));
    assert!(!remembers_inside(b"0123\t../x\0"));
    assert!(!remembers_inside(b"0123\ta\x004567\t/etc/x\0"));
    assert!(!remembers_inside(b"0123 a\0"));
}

/// A repository that real git made.
struct Repository(PathBuf);

impl Repository {
    fn new(name: &str, words: &[&str]) -> Self {
        let path =
            std::env::temp_dir().join(format!("cofferdam-index-{name}-{}", std::process::id()));
        std::fs::create_dir_all(path.join("d/e")).unwrap();
        let made = Self(path);
        made.git(&[&["init", "-q"], words].concat());
        for file in ["a", "d/b", "d/e/c", "d/e/cc", "z"] {
            std::fs::write(made.0.join(file), file).unwrap();
        }
        made
    }

    fn git(&self, words: &[&str]) {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words).current_dir(&self.0);
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        let done = git.output().unwrap();
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// What each index of it says.
    fn judged(&self) -> Vec<Names> {
        let entries = std::fs::read_dir(self.0.join(".git")).unwrap().map(|entry| entry.unwrap());
        let is_one = |name: &str| name == "index" || name.starts_with("sharedindex.");
        let named = entries.filter(|entry| is_one(entry.file_name().to_str().unwrap()));
        named.map(|entry| judge(&std::fs::read(entry.path()).unwrap())).collect()
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn what_git_writes_is_understood() {
    for (name, words) in [("sha1", &[][..]), ("sha256", &["--object-format=sha256"][..])] {
        let made = Repository::new(name, words);
        made.git(&["add", "a", "d"]);
        assert_eq!(made.judged(), [Names::Inside], "{name}");
        // The third version has entries with more flags.
        made.git(&["add", "-N", "z"]);
        assert_eq!(made.judged(), [Names::Inside], "{name}, 3");
        made.git(&["commit", "-q", "-m", "x", "-a"]);
        made.git(&["-c", "index.threads=2", "update-index", "--index-version", "4"]);
        made.git(&["status"]);
        assert_eq!(made.judged(), [Names::Inside], "{name}, 4");
        made.git(&["update-index", "--untracked-cache"]);
        made.git(&["update-index", "--split-index"]);
        std::fs::write(made.0.join("a"), "changed").unwrap();
        std::fs::write(made.0.join("new"), "new").unwrap();
        made.git(&["rm", "-q", "--cached", "d/b"]);
        made.git(&["add", "-A"]);
        let judged = made.judged();
        assert!(judged.len() > 1, "{name}: it is split");
        assert!(judged.iter().all(|names| *names == Names::Inside), "{name}: {judged:?}");
    }
}
