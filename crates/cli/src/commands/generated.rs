//! `cofferdam completions` and `cofferdam man`: what is made from the description of the verbs.

use crate::args::{CompletionsArgs, ManArgs, whole};
use crate::moment::{now_ms, timestamp};
use crate::surroundings::Surroundings;
use crate::{exit, live_completion, render};
use cofferdam_core::{Error, ErrorKind, Result};
use std::ffi::OsStr;
use std::path::Path;

/// Prints the completions of a shell.
pub(super) fn completions(args: &CompletionsArgs) -> Result<u8> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut whole(), "cofferdam", &mut text);
    let text = String::from_utf8(text)
        .map_err(|cause| Error::new(ErrorKind::Io, "the completions are no text").source(cause))?;
    render::print_text(&live_completion::added(args.shell, text))?;
    Ok(exit::DONE)
}

/// Prints the main page of the manual, or writes all pages into a directory.
pub(super) fn manual(args: &ManArgs) -> Result<u8> {
    match &args.directory {
        None => {
            let mut text = Vec::new();
            let written = page(whole()).render(&mut text);
            written.map_err(|cause| unwritten(Path::new("the manual")).source(cause))?;
            render::print_bytes(&text)?;
        }
        Some(verb) if is_verb(verb) => {
            let what =
                format!("{} is a verb, and would become a directory of all pages", verb.display());
            return Err(Error::new(ErrorKind::Usage, what).hint(format!(
                "See `cofferdam {} --help`, or write ./{} for a directory.",
                verb.display(),
                verb.display()
            )));
        }
        Some(directory) => {
            let failed = |cause: std::io::Error| unwritten(directory).source(cause);
            std::fs::create_dir_all(directory).map_err(failed)?;
            let mut all = whole().disable_help_subcommand(true);
            all.build();
            pages(all, directory).map_err(failed)?;
        }
    }
    Ok(exit::DONE)
}

/// The page of a command, of this version and day.
fn page(command: clap::Command) -> clap_mangen::Man {
    let version = concat!("cofferdam ", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(command).source(version).manual("Cofferdam").date(day())
}

/// Today, or the day that whoever packs it says, so that it is the same wherever it is packed.
fn day() -> String {
    let said = Surroundings::of_this_process().variables.remove(OsStr::new("SOURCE_DATE_EPOCH"));
    let said_s: Option<u64> = said.and_then(|text| text.to_str()?.parse().ok());
    let time = timestamp(said_s.map_or_else(now_ms, |seconds| seconds.saturating_mul(1000)));
    time.split('T').next().unwrap_or_default().to_owned()
}

/// Writes the page of a command and those of its verbs.
fn pages(command: clap::Command, directory: &Path) -> std::io::Result<()> {
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        pages(verb.clone(), directory)?;
    }
    page(command).generate_to(directory).map(drop)
}

/// Who asks for the page of a verb means no directory.
fn is_verb(directory: &Path) -> bool {
    let name = directory.to_str().unwrap_or_default();
    whole().get_subcommands().any(|verb| verb.get_name() == name) && !directory.exists()
}

fn unwritten(place: &Path) -> Error {
    Error::new(ErrorKind::Io, format!("write {}", place.display()))
}
