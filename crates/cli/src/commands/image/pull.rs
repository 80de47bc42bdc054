//! `cofferdam image pull`.

use super::{Lines, print};
use crate::args::parse_host;
use crate::images::{self, Asking, Bar, PullPolicy};
use crate::report;
use crate::surroundings::Surroundings;
use clap::Args;
use cofferdam_core::Result;
use cofferdam_image::{Event, Platform, Progress, Remote};

/// Of `image pull`.
#[derive(Debug, Args)]
#[command(after_long_help = crate::commands::ORDINARY_EXIT_CODES)]
pub(crate) struct PullArgs {
    /// The image: [REGISTRY/]REPOSITORY[:TAG][@DIGEST].
    #[arg(value_name = "REFERENCE", value_parser = parse_remote)]
    pub(crate) reference: Remote,
    /// Pulls what is for this platform. Default: this machine's.
    ///
    /// An image for another platform has no name here; it is used by its id.
    ///
    /// Example: --platform linux/arm64
    #[arg(long, value_name = "linux/ARCH")]
    pub(crate) platform: Option<Platform>,
    /// Asks this registry without encryption, if it knows nothing else. Repeatable.
    ///
    /// Example: --insecure-registry registry.lan:5000
    #[arg(long, value_name = "HOST[:PORT]", value_parser = parse_host)]
    pub(crate) insecure_registry: Vec<String>,
    /// Prints the id and nothing else.
    ///
    /// Example: --quiet
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Prints JSON on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reads a name with or without the scheme that says that it is one.
fn parse_remote(text: &str) -> Result<Remote> {
    Remote::parse(text.strip_prefix("docker://").unwrap_or(text))
}

/// Pulls it.
pub(super) fn perform(args: &PullArgs, surroundings: &Surroundings) -> Result<()> {
    let platform = args.platform.clone().unwrap_or_else(Platform::host);
    let insecure = args.insecure_registry.clone();
    let asking = Asking { policy: PullPolicy::Always, insecure };
    let pull = |progress: &mut dyn Progress| {
        images::of_registry(&args.reference, &platform, &asking, surroundings, progress)
    };
    let mut told = Told { bar: Bar::new(), digest: None };
    let (image, held) = match (args.json, args.quiet) {
        (true, true) => pull(&mut cofferdam_image::Silent)?,
        (true, false) => pull(&mut Lines)?,
        (false, true) => pull(&mut cofferdam_image::Silent)?,
        (false, false) => pull(&mut told)?,
    };
    // Nobody lies on it yet.
    drop(held);
    if let Told { bar, digest: Some(digest) } = told {
        drop(bar);
        report::note(&format!("{} is {digest}", args.reference));
    }
    print(&image, &surroundings.state_directory()?, args.json)
}

/// A bar, and what the name means.
struct Told {
    bar: Bar,
    digest: Option<String>,
}

impl Progress for Told {
    fn tell(&mut self, event: Event) {
        if let Event::Resolved { digest, .. } = &event {
            self.digest = Some(digest.clone());
        }
        self.bar.tell(event);
    }
}
