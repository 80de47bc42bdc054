//! Runs the real program in a place of its own, and compares what it says with what was reviewed.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A directory with a home and a workspace, gone with the value.
pub(crate) struct Place {
    base: PathBuf,
}

/// What a run of the program said.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    /// A fresh place. `name` tells the tests apart.
    pub(crate) fn new(name: &str) -> Self {
        // Another user than the one who built may not write below the target directory.
        let base =
            std::env::temp_dir().join(format!("cofferdam-cli-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&base);
        for directory in ["home", "work/sub"] {
            fs::create_dir_all(base.join(directory)).unwrap();
        }
        Self { base: base.canonicalize().unwrap() }
    }

    /// A path in this place.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.base.join(below)
    }

    /// Writes a file that only its owner may write, with its directories.
    pub(crate) fn write(&self, below: &str, text: &str) -> PathBuf {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        path
    }

    /// Runs the program in `work` with these words and variables, and nothing else of ours.
    pub(crate) fn run_with<W: Into<OsString>>(
        &self,
        words: impl IntoIterator<Item = W>,
        variables: &[(&str, &str)],
    ) -> Said {
        let output = Command::new(env!("CARGO_BIN_EXE_cofferdam"))
            .args(words.into_iter().map(Into::into))
            .current_dir(self.path("work"))
            .env_clear()
            .env("HOME", self.path("home"))
            .env("PATH", "/usr/bin:/bin")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        Said {
            code: output.status.code().unwrap(),
            stdout: self.shown(&output.stdout),
            stderr: self.shown(&output.stderr),
        }
    }

    /// The same from a line of words separated by spaces.
    pub(crate) fn run(&self, line: &str) -> Said {
        self.run_with(line.split(' ').filter(|word| !word.is_empty()), &[])
    }

    fn shown(&self, bytes: &[u8]) -> String {
        String::from_utf8(bytes.to_vec())
            .unwrap()
            .replace(env!("CARGO_BIN_EXE_cofferdam"), "$EXE")
            .replace(self.base.to_str().unwrap(), "$PLACE")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.base);
    }
}

impl Said {
    /// A transcript of it.
    pub(crate) fn transcript(&self, line: &str) -> String {
        let mut text = format!("$ cofferdam {line}\n{}", self.stdout);
        for line in self.stderr.lines() {
            text.push_str(format!("! {line}").trim_end());
            text.push('\n');
        }
        text + &format!("[{}]\n\n", self.code)
    }
}

/// Compares a text with a reviewed file below the package; `BLESS=1` writes the file instead.
pub(crate) fn compare(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        return;
    }
    let reviewed = fs::read_to_string(&path).unwrap_or_default();
    if reviewed == text {
        return;
    }
    let differs = reviewed.lines().zip(text.lines()).position(|(a, b)| a != b);
    let at = differs.unwrap_or_else(|| reviewed.lines().count().min(text.lines().count()));
    panic!(
        "{file}, line {}: reviewed {:?}, now {:?}; BLESS=1 rewrites it",
        at + 1,
        reviewed.lines().nth(at),
        text.lines().nth(at),
    );
}
