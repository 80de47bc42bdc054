//! What the words of a command line mean here: settings merged, paths found, a [`Spec`] built.

use crate::args::{
    CommandOptions, ConfigOptions, IdlePause, PolicyOptions, SessionOptions, StartOptions,
    VariableOptions,
};
use crate::config::{
    Beside, ImageWish, Layer, Loaded, Origin, Sourced, Unapproved, VariableWish, load, said,
};
use crate::copying;
use crate::images::{self, Asking};
use crate::parts::BackendName;
use crate::surroundings::Surroundings;
use crate::{places, report, secrets};
use cofferdam_core::{
    Caller, Error, ErrorKind, Image, LayerChoice, ProcessId, Profile, Result, SensitiveWrites,
    Spec, User, Workspace,
};
use cofferdam_image::Held;
use cofferdam_local::environment;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

/// What a command line means here.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// The sandbox that is wanted.
    pub(crate) spec: Spec,
    /// Where it comes from.
    pub(crate) backend: BackendName,
    /// How long a command may run.
    pub(crate) timeout: Option<Duration>,
    /// How much a stream of output may hold, if somebody said so.
    pub(crate) max_output_bytes: Option<u64>,
    /// How a sandbox is kept, if it is.
    pub(crate) keeping: Keeping,
    /// Names of the caller's variables that somebody asked to pass on.
    pub(crate) passed: Vec<OsString>,
    /// Where records are kept.
    pub(crate) state_directory: PathBuf,
    /// How registries are asked.
    pub(crate) asking: Asking,
    /// What keeps the layers of the spec's image where they are.
    _layers: Option<Rc<Held>>,
}

/// How a session is kept. Absent is "nothing said".
#[derive(Debug, Clone)]
pub(crate) struct Keeping {
    /// What prepares it, in order.
    pub(crate) init: Vec<OsString>,
    /// When it is paused.
    pub(crate) idle_pause: Option<IdlePause>,
    /// How long it stays.
    pub(crate) ttl: Option<Duration>,
    /// Whether its commands are points of its history.
    pub(crate) checkpoints: Option<bool>,
}

impl Context {
    /// Reads the surroundings and the configuration, and puts the options over them.
    pub(crate) fn new(
        policy: &PolicyOptions,
        command: Option<&CommandOptions>,
        config: &ConfigOptions,
    ) -> Result<Self> {
        let surroundings = Surroundings::of_this_process();
        let mut flags = flags(policy, command.map(|command| &command.variables), &surroundings)?;
        if let Some(command) = command {
            flags.timeout = command.timeout.map(flag);
            flags.max_output_bytes = command.max_output.map(flag);
        }
        let Loaded { layer, files: _ } = load(&surroundings, config, flags, Unapproved::Refuse)?;
        Self::from_layer(layer, surroundings)
    }

    /// The same for a sandbox that is kept.
    pub(crate) fn of_session(options: &SessionOptions) -> Result<Self> {
        let surroundings = Surroundings::of_this_process();
        let mut flags = flags(&options.policy, Some(&options.variables), &surroundings)?;
        flags.init = options.keeping.init.iter().cloned().map(flag).collect();
        flags.idle_pause = options.keeping.idle_pause.map(flag);
        flags.ttl = options.keeping.ttl.map(flag);
        flags.checkpoints = options.keeping.no_checkpoints.then(|| flag(false));
        let Loaded { layer, files: _ } =
            load(&surroundings, &options.config, flags, Unapproved::Refuse)?;
        let mut context = Self::from_layer(layer, surroundings)?;
        context.keep_what_shapes_a_sandbox();
        Ok(context)
    }

    /// Forgets what a sandbox does not depend on: one that is kept is written down.
    pub(crate) fn keep_what_shapes_a_sandbox(&mut self) {
        self.spec.caller = environment::reduced(&self.spec.caller);
    }

    fn from_layer(layer: Layer, surroundings: Surroundings) -> Result<Self> {
        let state_directory = surroundings.state_directory()?;
        let profile = layer.profile.as_ref().map_or_else(Profile::default, |said| said.value);
        let workspace = workspace(&layer, &surroundings)?;
        let (env, passed) = variables(&layer.env, &surroundings);
        let limits = layer.limits()?;
        let (egress, choice) = (layer.rules()?, tier(&layer));
        let (grants, granted_by) = layer.grants();
        let mut spec = Spec {
            profile,
            egress,
            deny: layer.deny_egress.into_iter().map(|said| said.value).collect(),
            host_ports: layer.host_ports.into_iter().map(|said| said.value).collect(),
            ask: layer.ask.as_ref().map_or(Duration::ZERO, |said| said.value),
            image: None,
            layer: choice,
            read: shown_paths(layer.read)?,
            write: shown_paths(layer.write)?,
            hide: places::plain(layer.hide)?,
            env,
            limits,
            sensitive_writes: layer.sensitive_writes.map(|said| said.value).unwrap_or_default(),
            on_unavailable: layer.on_unavailable.map(|said| said.value).unwrap_or_default(),
            ..Spec::new(workspace, Caller::default())
        };
        spec.grant(grants.clone()).map_err(|error| granted_by.named_in(error))?;
        spec.network_policy()?;
        secrets::must_exist(&grants, &state_directory)?;
        if matches!(spec.workspace, Workspace::CopyOnWrite(_)) {
            copying::show();
        }
        places::keep_own_files_out(&spec, &surroundings, &state_directory)?;
        let insecure = layer.insecure_registry.into_iter().map(|said| said.value).collect();
        let policy = layer.pull.map(|said| said.value).unwrap_or_default();
        let asking = Asking { policy, insecure };
        let image = layer.image.as_ref();
        let image = image.map(|said| images::open(&said.value, &asking, &surroundings, &spec));
        let (image, layers) = image.transpose()?.unzip();
        let user = layer.user.map_or_else(|| usual_user(image.as_ref()), |said| said.value);
        let caller = Caller { env: surroundings.variables, home: surroundings.home };
        Ok(Self {
            spec: Spec { caller, image, user, ..spec },
            backend: layer.backend.map(|said| said.value).unwrap_or_default(),
            timeout: layer.timeout.map(|said| said.value),
            max_output_bytes: layer.max_output_bytes.map(|said| said.value),
            keeping: Keeping {
                init: layer.init.into_iter().map(|said| said.value).collect(),
                idle_pause: layer.idle_pause.map(|said| said.value),
                ttl: layer.ttl.map(|said| said.value),
                checkpoints: layer.checkpoints.map(|said| said.value),
            },
            passed,
            state_directory,
            asking,
            _layers: layers.map(Rc::new),
        })
    }

    /// The command that these options ask for, without its streams.
    pub(crate) fn command(
        &self,
        options: &CommandOptions,
        start: &StartOptions,
    ) -> Result<cofferdam_core::Command> {
        let id = ProcessId::new("run")?;
        let mut command = cofferdam_core::Command::new(id, self.argv(options, start)?);
        command.cwd = options.cwd.as_ref().map(|cwd| self.directory_inside(cwd.clone()).into());
        command.timeout = self.timeout;
        command.secrets = secrets::given(&options.secrets(), &self.state_directory)?;
        Ok(command)
    }

    /// The words of the command, with those of the image around them.
    fn argv(&self, options: &CommandOptions, start: &StartOptions) -> Result<Vec<OsString>> {
        let Some(image) = &self.spec.image else {
            start.refuse("--entrypoint is the start of an image, and there is none")?;
            return argv(options, "run");
        };
        if options.shell.is_some() {
            // A line is for a shell, whatever else the image starts.
            start.refuse("--shell starts a shell, so --entrypoint cannot lead it")?;
            return argv(options, "run");
        }
        let lead = start.entrypoint.as_ref().map(|program| match program.is_empty() {
            true => Vec::new(),
            false => vec![program.clone()],
        });
        let words = image.run.argv(lead.as_deref(), &options.argv);
        if words.is_empty() {
            return Err(Error::new(
                ErrorKind::Usage,
                "the image names no command, and none is given",
            )
            .hint("Put one after --, as in `cofferdam run --image REF -- sh`."));
        }
        Ok(words)
    }

    fn directory_inside(&self, cwd: PathBuf) -> PathBuf {
        match &self.spec.workspace {
            Workspace::Directory(workspace) | Workspace::CopyOnWrite(workspace) => {
                workspace.join(cwd)
            }
            Workspace::Private => PathBuf::from("/workspace").join(cwd),
        }
    }
}

/// The program and its arguments: what follows `--`, or a shell and its line. `form` is how the verb
/// is called up to there.
pub(crate) fn argv(options: &CommandOptions, form: &str) -> Result<Vec<OsString>> {
    match (&options.shell, options.argv.is_empty()) {
        (None, false) => Ok(options.argv.clone()),
        (Some(line), true) => Ok(vec!["/bin/sh".into(), "-c".into(), line.clone()]),
        (Some(_), false) => {
            Err(Error::new(ErrorKind::Usage, "both --shell and a command after -- are given")
                .hint("Give one of them: --shell LINE, or -- ARGV…."))
        }
        (None, true) => Err(Error::new(ErrorKind::Usage, "no command is given").hint(format!(
            "Put it after --, as in `cofferdam {form} -- ls`, or give --shell LINE."
        ))),
    }
}

/// What the command line says, as a layer.
fn flags(
    policy: &PolicyOptions,
    variables: Option<&VariableOptions>,
    surroundings: &Surroundings,
) -> Result<Layer> {
    let paths = |paths: &[PathBuf]| -> Result<Vec<Sourced<PathBuf>>> {
        paths.iter().map(|path| surroundings.located(path).map(flag)).collect()
    };
    let workspace = match &policy.workspace {
        Some(directory) => Some(Workspace::Directory(surroundings.located(directory)?)),
        None => policy.no_workspace.then_some(Workspace::Private),
    };
    let image = match policy.image.clone() {
        Some(reference) => {
            Some(flag(ImageWish { reference, from: surroundings.directory()?.to_owned() }))
        }
        None => None,
    };
    let mut layer = Layer {
        profile: policy.profile.map(flag),
        image,
        pull: policy.pull.map(flag),
        insecure_registry: policy.insecure_registry.iter().cloned().map(flag).collect(),
        workspace: workspace.map(flag),
        copy_on_write: policy.cow.map(|tier| flag(Beside::Layer(tier))),
        read: paths(&policy.read)?,
        write: paths(&policy.write)?,
        hide: paths(&policy.hide)?,
        egress: policy.rules.egress.iter().cloned().map(flag).collect(),
        deny_egress: policy.rules.deny_egress.iter().cloned().map(flag).collect(),
        host_ports: policy.rules.allow_host_port.iter().copied().map(flag).collect(),
        ask: policy.ask.map(flag),
        secrets: policy.secret.iter().cloned().map(flag).collect(),
        memory_bytes: policy.memory.map(flag),
        pids: policy.pids.map(flag),
        cpu_millis: policy.cpu.map(flag),
        disk_bytes: policy.disk.map(flag),
        user: policy.user.map(flag),
        on_unavailable: policy.on_unavailable.map(flag),
        backend: policy.backend.map(flag),
        sensitive_writes: policy.allow_sensitive_writes.then(|| flag(SensitiveWrites::Allowed)),
        ..Layer::default()
    };
    layer.env = variables.map(wishes).unwrap_or_default();
    Ok(layer)
}

/// What is wished for on the command line. A value that is given counts before one that is the caller's.
fn wishes(variables: &VariableOptions) -> Vec<Sourced<VariableWish>> {
    let set = variables.env.iter().cloned().map(|(name, value)| VariableWish::Set(name, value));
    let pass = variables.env_from.iter().cloned().map(VariableWish::Pass);
    pass.chain(set).map(flag).collect()
}

/// The variables that these options ask for, for a command in a session that is there.
pub(crate) fn command_variables(
    options: &VariableOptions,
    surroundings: &Surroundings,
) -> BTreeMap<OsString, OsString> {
    variables(&wishes(options), surroundings).0
}

fn flag<T>(value: T) -> Sourced<T> {
    said(value, &Origin::Flag)
}

fn workspace(layer: &Layer, surroundings: &Surroundings) -> Result<Workspace> {
    let directory = match &layer.workspace {
        None => surroundings.directory()?.to_owned(),
        Some(said) => match said.value.directory() {
            Some(path) => places::directory(path, surroundings)?,
            // The empty one is thrown away as it is.
            None => return Ok(Workspace::Private),
        },
    };
    Ok(match layer.copy_on_write {
        Some(Sourced { value: Beside::Layer(_), .. }) => Workspace::CopyOnWrite(directory),
        Some(Sourced { value: Beside::No, .. }) | None => Workspace::Directory(directory),
    })
}

/// Root where an image wants it, as its files may be for root alone. Where the image names a user whom it does
/// not know, that is said.
fn usual_user(image: Option<&Image>) -> User {
    let Some(wish) = image.map(|image| &image.run) else { return User::default() };
    if let Some(unknown) = wish.unknown_user() {
        report::note(&format!(
            "the image wants user {unknown}, who is in none of its lists: commands are an ordinary user; \
             choose with --user sandbox or --user root"
        ));
    }
    match wish.is_root() {
        true => User::Root,
        false => User::default(),
    }
}

/// What is to make the layer, if there is to be one.
fn tier(layer: &Layer) -> LayerChoice {
    match layer.copy_on_write {
        Some(Sourced { value: Beside::Layer(tier), .. }) => tier,
        Some(Sourced { value: Beside::No, .. }) | None => LayerChoice::default(),
    }
}

fn shown_paths(paths: Vec<Sourced<PathBuf>>) -> Result<Vec<PathBuf>> {
    let paths = places::plain(paths)?;
    for path in &paths {
        places::must_exist(path)?;
    }
    Ok(paths)
}

fn variables(
    wishes: &[Sourced<VariableWish>],
    surroundings: &Surroundings,
) -> (BTreeMap<OsString, OsString>, Vec<OsString>) {
    let mut env = BTreeMap::new();
    let mut passed = Vec::new();
    for wish in wishes {
        match &wish.value {
            VariableWish::Set(name, value) => {
                passed.retain(|known| known != name);
                env.insert(name.clone(), value.clone());
            }
            VariableWish::Pass(name) => {
                if let Some(value) = surroundings.variables.get(name) {
                    env.insert(name.clone(), value.clone());
                    passed.push(name.clone());
                }
            }
        }
    }
    (env, passed)
}
