//! The checkout, as the checks see it.

use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every text file of the checkout, and every locked package.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) files: Vec<File>,
    pub(super) packages: Vec<Package>,
}

/// A text file.
#[derive(Debug)]
pub(super) struct File {
    /// Relative to the root of the checkout.
    pub(super) path: String,
    pub(super) text: String,
}

/// A locked package, as `cargo metadata` tells it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) license: Option<String>,
    /// `None` for a package of this workspace.
    pub(super) source: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

impl Tree {
    /// Reads the checkout that this program was built from.
    pub(super) fn read() -> Result<Self, String> {
        let root = root();
        let mut files = Vec::new();
        for path in paths(&root)? {
            let Ok(bytes) = std::fs::read(root.join(&path)) else { continue };
            if let Ok(text) = String::from_utf8(bytes) {
                files.push(File { path, text });
            }
        }
        Ok(Self { files, packages: packages(&root)? })
    }

    /// The file of this name.
    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The Rust sources.
    pub(super) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }

    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|(path, text)| File { path: (*path).to_owned(), text: (*text).to_owned() })
            .collect();
        Self { files, packages: Vec::new() }
    }
}

impl File {
    pub(super) fn is_rust(&self) -> bool {
        Path::new(&self.path).extension().is_some_and(|extension| extension == "rs")
    }

    /// Its lines, numbered from 1.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

/// The root of the checkout.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// What git tracks or would track; without git, what is found by walking.
fn paths(root: &Path) -> Result<Vec<String>, String> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output();
    if let Ok(output) = listed
        && output.status.success()
    {
        let text = String::from_utf8_lossy(&output.stdout);
        let mut paths: Vec<String> =
            text.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect();
        paths.sort();
        paths.dedup();
        return Ok(paths);
    }
    let mut paths = Vec::new();
    walk(root, "", &mut paths).map_err(|error| format!("read {}: {error}", root.display()))?;
    paths.sort();
    Ok(paths)
}

fn walk(directory: &Path, prefix: &str, paths: &mut Vec<String>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        if entry.file_type()?.is_dir() {
            if name != "target" && name != ".git" {
                walk(&entry.path(), &path, paths)?;
            }
        } else {
            paths.push(path);
        }
    }
    Ok(())
}

/// The locked packages that this host's build uses. Needs no network.
fn packages(root: &Path) -> Result<Vec<Package>, String> {
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .args(["--filter-platform", &platform])
        .current_dir(root)
        .output()
        .map_err(|error| format!("start cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let metadata: Metadata = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("read the answer of cargo metadata: {error}"))?;
    Ok(metadata.packages)
}
