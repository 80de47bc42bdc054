//! The table of roots that toolchains are known to live in.

use crate::view::lookup::is_within;
use cofferdam_core::Caller;

/// A directory that a toolchain needs as a whole.
pub(super) struct Root {
    /// The variable that names it, and that is set inside.
    pub(super) variable: &'static str,
    /// Where it is without the variable, below the home directory unless absolute.
    pub(super) default: &'static str,
    /// A directory below the home directory whose presence on `PATH` means this root too.
    with: &'static str,
    /// How it is shown.
    pub(super) shown: Show,
    /// What it is.
    pub(super) what: &'static str,
}

/// How much of a root is shown.
pub(super) enum Show {
    /// All of it, read-only.
    Whole,
    /// A private directory with programs and caches of cargo in it.
    Cargo,
}

/// The roots, in the order in which they are tried.
pub(super) const ROOTS: &[Root] = &[
    Root {
        variable: "CARGO_HOME",
        default: ".cargo",
        with: "",
        shown: Show::Cargo,
        what: "programs of cargo",
    },
    Root { with: ".cargo/bin", ..whole("RUSTUP_HOME", ".rustup", "Rust toolchains") },
    whole("PYENV_ROOT", ".pyenv", "Python versions of pyenv"),
    whole("VIRTUAL_ENV", "", "the active Python environment"),
    whole("CONDA_PREFIX", "", "the active conda environment"),
    whole("", "miniconda3", "conda"),
    whole("", "anaconda3", "conda"),
    whole("", "miniforge3", "conda"),
    whole("", "mambaforge", "conda"),
    whole("NVM_DIR", ".nvm", "Node versions of nvm"),
    whole("FNM_DIR", ".local/share/fnm", "Node versions of fnm"),
    whole("VOLTA_HOME", ".volta", "Node versions of volta"),
    whole("N_PREFIX", "n", "Node versions of n"),
    whole("PNPM_HOME", ".local/share/pnpm", "programs of pnpm"),
    whole("BUN_INSTALL", ".bun", "bun"),
    whole("DENO_INSTALL", ".deno", "deno"),
    whole("GOROOT", "", "Go"),
    whole("SDKMAN_DIR", ".sdkman", "Java versions of SDKMAN"),
    whole("JAVA_HOME", "", "Java"),
    whole("JENV_ROOT", ".jenv", "Java versions of jenv"),
    whole("MAVEN_HOME", "", "maven"),
    whole("GRADLE_HOME", "", "gradle"),
    whole("ASDF_DATA_DIR", ".asdf", "versions of asdf"),
    whole("ASDF_DIR", ".asdf", "asdf"),
    whole("MISE_DATA_DIR", ".local/share/mise", "versions of mise"),
    whole("RBENV_ROOT", ".rbenv", "Ruby versions of rbenv"),
    whole("GEM_HOME", "", "Ruby programs"),
    whole("NODENV_ROOT", ".nodenv", "Node versions of nodenv"),
    whole("DOTNET_ROOT", ".dotnet", ".NET"),
    whole("", ".ghcup", "Haskell toolchains"),
    whole("OPAMROOT", ".opam", "OCaml toolchains"),
    whole("POETRY_HOME", ".poetry", "poetry"),
    whole("HOMEBREW_PREFIX", "/home/linuxbrew/.linuxbrew", "programs of Homebrew"),
    Root { with: ".local/bin", ..whole("", ".local/share/uv", "programs of uv") },
    Root { with: ".local/bin", ..whole("", ".local/share/pipx", "programs of pipx") },
    Root { with: ".local/bin", ..whole("", ".local/pipx", "programs of pipx") },
];

const fn whole(variable: &'static str, default: &'static str, what: &'static str) -> Root {
    Root { variable, default, with: "", shown: Show::Whole, what }
}

impl Root {
    /// Whether this entry of `PATH` means the root although it lies elsewhere.
    pub(super) fn goes_with(&self, entry: &str, caller: &Caller) -> bool {
        if self.with.is_empty() {
            return false;
        }
        let below = |directory: &std::path::Path| {
            directory.to_str().is_some_and(|directory| is_within(entry, directory))
        };
        let at_home = caller.home.as_ref().is_some_and(|home| below(&home.join(self.with)));
        let moved = self.with == ".cargo/bin"
            && caller
                .env
                .get(std::ffi::OsStr::new("CARGO_HOME"))
                .is_some_and(|cargo| below(&std::path::Path::new(cargo).join("bin")));
        at_home || moved
    }
}
