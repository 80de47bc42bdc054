//! What is measured, made ready: directories, programs, people.

use super::Outcome;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory that every person can reach, with what is measured in it. Removed at the end.
pub(super) struct Ground {
    directory: PathBuf,
    has_bwrap: bool,
    pub(super) people: Vec<Person>,
    /// What could not be made ready, in sentences.
    pub(super) notes: Vec<String>,
}

/// Somebody to measure as.
pub(super) struct Person {
    /// `root` or `user`.
    pub(super) who: &'static str,
    pub(super) workspace: PathBuf,
    /// The argv that becomes this person and then runs what follows; none for the caller.
    pub(super) become_argv: Option<Vec<String>>,
}

/// A program that does nothing, without a C library: 60 and 93 are `exit`.
const STATIC_PROGRAM: &str = r#"
__attribute__((noreturn)) void _start(void) {
#if defined(__x86_64__)
  __asm__ volatile("mov $60, %eax\n xor %edi, %edi\n syscall");
#elif defined(__aarch64__)
  __asm__ volatile("mov x8, #93\n mov x0, #0\n svc #0");
#endif
  __builtin_unreachable();
}
"#;
const STATIC_NAME: &str = "true-static";

impl Ground {
    /// Makes everything ready.
    pub(super) fn new(program: &Path, user: &str) -> Outcome<Self> {
        let name = format!("cofferdam-bench.{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        make_directory(&directory)?;
        let has_bwrap = succeeds(Command::new("bwrap").arg("--version"));
        let mut ground = Self { directory, has_bwrap, people: Vec::new(), notes: Vec::new() };
        if !has_bwrap {
            ground.notes.push("bubblewrap is not installed, its row is missing.".to_owned());
        }
        ground.copy(program, "cofferdam")?;
        let own = std::env::current_exe().map_err(|error| format!("find this program: {error}"))?;
        ground.copy(&own, "spawner")?;
        ground.add_people(user)?;
        ground.add_static_program();
        Ok(ground)
    }

    fn copy(&self, from: &Path, name: &str) -> Outcome<()> {
        let to = self.directory.join(name);
        std::fs::copy(from, &to).map_err(|error| format!("copy {}: {error}", from.display()))?;
        open_to_all(&to)
    }

    fn add_people(&mut self, user: &str) -> Outcome<()> {
        if !rustix::process::geteuid().is_root() {
            return self.add("user", None, None);
        }
        self.add("root", None, None)?;
        // Below the usual noise of a desktop. Where it fails, the remark about noise tells.
        let _ = rustix::process::nice(-20);
        let known = succeeds(Command::new("id").args(["-u", user]));
        if !known || !succeeds(Command::new("setpriv").arg("--version")) {
            let note = format!(
                "There is no user {user}, or no setpriv: rows of an ordinary user are missing. `./test` makes the user."
            );
            self.notes.push(note);
            return Ok(());
        }
        let argv = [
            "setpriv".to_owned(),
            format!("--reuid={user}"),
            format!("--regid={user}"),
            "--init-groups".to_owned(),
            "--reset-env".to_owned(),
        ];
        self.add("user", Some(argv.to_vec()), Some(user))
    }

    fn add(
        &mut self,
        who: &'static str,
        become_argv: Option<Vec<String>>,
        owner: Option<&str>,
    ) -> Outcome<()> {
        let workspace = self.directory.join(format!("workspace-{who}"));
        make_directory(&workspace)?;
        if let Some(owner) = owner
            && !succeeds(Command::new("chown").arg(owner).arg(&workspace))
        {
            return Err(format!("give {} to {owner}", workspace.display()));
        }
        self.people.push(Person { who, workspace, become_argv });
        Ok(())
    }

    fn add_static_program(&mut self) {
        let source = self.directory.join("true.c");
        let program = self.directory.join(STATIC_NAME);
        let compiled = std::fs::write(&source, STATIC_PROGRAM).is_ok()
            && succeeds(
                Command::new("cc")
                    .args(["-O2", "-static", "-nostdlib", "-nostartfiles", "-o"])
                    .arg(&program)
                    .arg(&source),
            );
        let copied = compiled
            && self.people.iter().all(|person| {
                let to = person.workspace.join(STATIC_NAME);
                std::fs::copy(&program, &to).is_ok() && open_to_all(&to).is_ok()
            });
        if !copied {
            self.notes.push("No C compiler: the rows of a static program are missing.".to_owned());
        }
    }

    /// The program that is measured.
    pub(super) fn program(&self) -> String {
        self.directory.join("cofferdam").to_string_lossy().into_owned()
    }

    /// A place of this name that everybody can reach.
    pub(super) fn place(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// This program, where everybody can reach it.
    pub(super) fn spawner(&self) -> PathBuf {
        self.directory.join("spawner")
    }

    /// The static program in this workspace, if it could be made.
    pub(super) fn static_program(&self, workspace: &str) -> Option<String> {
        let path = Path::new(workspace).join(STATIC_NAME);
        path.exists().then(|| path.to_string_lossy().into_owned())
    }

    /// bubblewrap with all namespaces, the system read-only, private space in memory, the workspace
    /// at two places, no capability. It has no system call filter and no Landlock, so it does less.
    pub(super) fn bwrap(&self, workspace: &str, argv: &[String]) -> Option<Vec<String>> {
        if !self.has_bwrap {
            return None;
        }
        let mut whole: Vec<String> = [
            "bwrap",
            "--unshare-all",
            "--die-with-parent",
            "--new-session",
            "--clearenv",
            "--hostname",
            "cofferdam",
            "--cap-drop",
            "ALL",
            "--ro-bind",
            "/usr",
            "/usr",
        ]
        .map(str::to_owned)
        .to_vec();
        for name in ["/bin", "/sbin", "/lib", "/lib64"] {
            match std::fs::read_link(name) {
                Ok(target) => {
                    let target = target.to_string_lossy().into_owned();
                    whole.extend(["--symlink".to_owned(), target, name.to_owned()]);
                }
                Err(_) => whole.extend(["--ro-bind-try", name, name].map(str::to_owned)),
            }
        }
        for name in [
            "/etc/alternatives",
            "/etc/ld.so.cache",
            "/etc/ld.so.conf",
            "/etc/ld.so.conf.d",
            "/etc/localtime",
            "/etc/ssl",
        ] {
            whole.extend(["--ro-bind-try", name, name].map(str::to_owned));
        }
        whole.extend(["--proc", "/proc", "--dev", "/dev"].map(str::to_owned));
        for name in ["/tmp", "/var/tmp", "/home/sandbox", "/dev/shm"] {
            whole.extend(["--tmpfs", name].map(str::to_owned));
        }
        for place in [workspace, "/workspace"] {
            whole.extend(["--bind", workspace, place].map(str::to_owned));
        }
        whole.extend(["--setenv", "PATH", "/usr/bin:/bin"].map(str::to_owned));
        whole.extend(["--chdir", "/workspace", "--"].map(str::to_owned));
        whole.extend_from_slice(argv);
        Some(whole)
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // What stays behind lies below the directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Where cargo builds.
pub(super) fn target_directory() -> PathBuf {
    let default = || crate::tidy::root().join("target");
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(default, PathBuf::from)
}

/// The size of the guest program that the last release build made.
pub(super) fn guest_bytes() -> Option<u64> {
    let mut newest = None;
    let mut directories = vec![target_directory().join("release/build")];
    while let Some(directory) = directories.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            let Ok(facts) = entry.metadata() else { continue };
            if facts.is_dir() {
                directories.push(entry.path());
            } else if entry.file_name() == "cofferdam-box" {
                newest = newest.max(facts.modified().ok().map(|time| (time, facts.len())));
            }
        }
    }
    newest.map(|(_, bytes)| bytes)
}

fn make_directory(path: &Path) -> Outcome<()> {
    std::fs::create_dir(path).map_err(|error| format!("make {}: {error}", path.display()))?;
    open_to_all(path)
}

fn open_to_all(path: &Path) -> Outcome<()> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
        .map_err(|error| format!("open {} to all: {error}", path.display()))
}

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
