//! The conformance suite over the backend of this machine, as the caller and, where that is root,
//! once more as an ordinary user.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test program without the harness whose functions may"
)]

use cofferdam::{
    Backend, Caller, ErrorKind, LayerChoice, Limit, OnUnavailable, Preparation, SandboxId, Spec,
    Workspace, kept_backend, prepared_backend,
};
use cofferdam_conformance::{
    Action, Fixture, HostFile, LayerGround, LayerPlace, LayerSubject, Need, ShellFixture, Subject,
};
use cofferdam_local::assemble::foresee;
use std::ffi::OsString;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Set for the second run: a directory that the ordinary user may write.
const AS_USER: &str = "CONFORMANCE_AS_USER";
/// An id that owns nothing on a usual machine and needs no account.
const ORDINARY: u32 = 54321;
/// A file outside every sandbox.
const HOST_FILE: &str = "host-file";

fn main() -> ExitCode {
    if let Some(place) = std::env::var_os(AS_USER) {
        return conform("local-as-user", Path::new(&place), Path::new(&place));
    }
    let place = Place::new();
    let skips = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/skips");
    if !is_root() {
        return conform("local-as-user", &place.0, &skips);
    }
    let as_root = conform("local-as-root", &place.0, &skips);
    if as_root != ExitCode::SUCCESS || only_lists() {
        return as_root;
    }
    as_user(&skips)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A directory in `/tmp`, because a build directory may be closed to others. Gone in the end.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        let mark = if is_root() { "root" } else { "user" };
        let path = std::env::temp_dir();
        let path = path.join(format!("cofferdam-conformance-{mark}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Directories that checks closed keep an ordinary user out.
        let open = std::process::Command::new("chmod").args(["-R", "u+rwX"]).arg(&self.0).output();
        let _ = open.and_then(|_| std::fs::remove_dir_all(&self.0));
    }
}

/// Runs a copy of this program as an ordinary user, and judges its skips here, where they can be
/// read and written.
fn as_user(skips: &Path) -> ExitCode {
    let place = Place::new_for_user();
    let program = place.0.join("conformance");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let id = ORDINARY.to_string();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"]).arg(&program);
    command.args(std::env::args_os().skip(1));
    command.env(AS_USER, &place.0).env("HOME", &place.0).env("BLESS", "1").current_dir(&place.0);
    let succeeded = match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            println!("skipped: user: setpriv cannot be run: {error}");
            return ExitCode::SUCCESS;
        }
    };
    if !succeeded {
        return ExitCode::FAILURE;
    }
    let mut names = vec!["local-as-user.txt".to_owned()];
    for tier in TIERS {
        let name = layered("local-as-user", tier);
        names.extend([format!("{name}.txt"), format!("{name}-points.txt")]);
    }
    let differs = |name: &String| match std::fs::read_to_string(place.0.join(name)) {
        // Only a part was asked for.
        Err(_) => false,
        Ok(found) => compare(&skips.join(name), &found) != ExitCode::SUCCESS,
    };
    if names.iter().any(differs) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

impl Place {
    fn new_for_user() -> Self {
        let path = std::env::temp_dir();
        let path = path.join(format!("cofferdam-conformance-ordinary-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        chown(&path, Some(ORDINARY), Some(ORDINARY)).unwrap();
        Self(path)
    }
}

fn compare(path: &Path, found: &str) -> ExitCode {
    if std::env::var_os("BLESS").is_some_and(|bless| bless == "1") {
        std::fs::write(path, found).unwrap();
        return ExitCode::SUCCESS;
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    if expected == found {
        return ExitCode::SUCCESS;
    }
    eprintln!("skips differ from {}.\nexpected:\n{expected}found:\n{found}", path.display());
    ExitCode::FAILURE
}

/// Over sandboxes that are copied from a template, with and without the next one made ahead, and over
/// those that are built from nothing.
fn conform(name: &str, place: &Path, skips: &Path) -> ExitCode {
    for preparation in [Preparation::Next, Preparation::Tree, Preparation::Nothing] {
        // On standard output stands the list of checks, where one is asked for.
        eprintln!("\n{name}, {preparation:?}:");
        let code = conform_prepared(name, preparation, (place, skips));
        if code != ExitCode::SUCCESS {
            return code;
        }
        if only_lists() {
            break;
        }
    }
    for tier in TIERS {
        let code = conform_layers(&layered(name, tier), tier, (place, skips));
        if code != ExitCode::SUCCESS || only_lists() {
            return code;
        }
    }
    ExitCode::SUCCESS
}

/// What makes the layers of kept sandboxes.
const TIERS: [LayerChoice; 2] = [LayerChoice::Overlay, LayerChoice::Copy];

fn layered(name: &str, tier: LayerChoice) -> String {
    format!("{name}-{}", tier.name())
}

fn only_lists() -> bool {
    std::env::args().any(|word| word == "--list")
}

/// Over the layers of kept sandboxes.
fn conform_layers(name: &str, tier: LayerChoice, (place, skips): (&Path, &Path)) -> ExitCode {
    eprintln!("\n{name}:");
    let place = place.join(tier.name());
    std::fs::create_dir(&place).unwrap();
    let backend = Arc::new(kept_backend(place.join("state")));
    let ground = LocalGround { place, tier, count: AtomicU32::new(0) };
    let mut subject = LayerSubject::new(name, backend, Arc::new(ground)).skips_in(skips);
    let code = cofferdam_conformance::main_of_layers(subject.clone());
    if code != ExitCode::SUCCESS {
        return code;
    }
    subject.name = format!("{name}-points");
    cofferdam_conformance::main_of_points(subject)
}

fn make_private(path: PathBuf) -> Result<PathBuf, String> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
    made.map(|()| path).map_err(|error| error.to_string())
}

/// Workspaces whose layers are made in one way.
struct LocalGround {
    place: PathBuf,
    tier: LayerChoice,
    count: AtomicU32,
}

impl LayerGround for LocalGround {
    fn place(&self) -> Result<LayerPlace, String> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let make = |name: &str| {
            let path = self.place.join(format!("{name}-{number}"));
            std::fs::create_dir(&path).map(|()| path).map_err(|error| error.to_string())
        };
        let place = LayerPlace { workspace: make("workspace")?, kept: make("kept")? };
        match foresee(&self.spec(&place.workspace)) {
            Ok(_) => Ok(place),
            Err(error) => Err(format!("this host makes no such layer: {}", error.chain())),
        }
    }

    fn sessions(&self) -> Result<PathBuf, String> {
        make_private(self.place.join("sessions"))
    }

    fn spec(&self, workspace: &Path) -> Spec {
        let mut spec = Spec::new(Workspace::CopyOnWrite(workspace.to_owned()), Caller::default());
        spec.layer = self.tier;
        spec
    }
}

fn conform_prepared(
    name: &str,
    preparation: Preparation,
    (place, skips): (&Path, &Path),
) -> ExitCode {
    let place = place.join(format!("{preparation:?}"));
    std::fs::create_dir(&place).unwrap();
    let backend = Arc::new(prepared_backend(place.join("state"), preparation));
    if let Some(reason) = cannot_sandbox(backend.as_ref()) {
        println!("skipped: {name}: {reason}");
        return ExitCode::SUCCESS;
    }
    std::fs::write(place.join(HOST_FILE), "a word that only the host knows").unwrap();
    let fixture = LocalFixture { place, workspaces: AtomicU32::new(0) };
    let subject = Subject::new(name, backend, Arc::new(fixture)).skips_in(skips);
    cofferdam_conformance::main(subject)
}

/// Why no sandbox can be made on this host, if none can.
fn cannot_sandbox(backend: &dyn Backend) -> Option<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let id = SandboxId::new(format!("first-{}", std::process::id())).unwrap();
        match backend.create(&id, &plain()).await {
            Ok(record) => {
                backend.destroy(&record).await.unwrap();
                None
            }
            Err(error) if error.kind == ErrorKind::Unenforceable => Some(error.chain()),
            Err(error) => panic!("no sandbox could be made: {}", error.chain()),
        }
    })
}

fn plain() -> Spec {
    Spec::new(Workspace::Private, Caller::default())
}

struct LocalFixture {
    place: PathBuf,
    workspaces: AtomicU32,
}

impl Fixture for LocalFixture {
    fn argv(&self, action: &Action) -> Vec<OsString> {
        ShellFixture::argv(action)
    }

    fn spec(&self) -> Spec {
        let number = self.workspaces.fetch_add(1, Ordering::Relaxed);
        let workspace = self.place.join(format!("workspace-{number}"));
        std::fs::create_dir(&workspace).unwrap();
        Spec::new(Workspace::Directory(workspace), Caller::default())
    }

    fn unenforceable(&self) -> Result<Spec, String> {
        let mut spec = plain();
        spec.limits.cpu_millis = Limit::Asked(500);
        match can_hold(&spec) {
            true => Err("this host holds every limit".to_owned()),
            false => Ok(spec),
        }
    }

    fn missing(&self, need: Need) -> Option<String> {
        let mut spec = plain();
        let what = match need {
            Need::MemoryLimit => {
                spec.limits.memory_bytes = Limit::Asked(64 << 20);
                "memory"
            }
            Need::ProcessLimit => {
                spec.limits.pids = Limit::Asked(64);
                "processes"
            }
        };
        (!can_hold(&spec)).then(|| format!("this host holds no limit of {what}"))
    }

    fn host_file(&self) -> HostFile {
        HostFile { path: self.place.join(HOST_FILE), secret: "only the host knows".to_owned() }
    }
}

fn can_hold(spec: &Spec) -> bool {
    let mut spec = spec.clone();
    spec.on_unavailable = OnUnavailable::Refuse;
    foresee(&spec).is_ok_and(|(planned, enforced)| {
        let verdict = enforced.overall(planned.limits_count);
        verdict == cofferdam::Enforcement::FullyEnforced
    })
}
