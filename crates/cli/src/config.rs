//! Configuration: which files and variables count, what they say, and who said it.
//!
//! The order, a later one wins: defaults, the user's file, the project's file, the environment, the
//! command line. Lists add up. A project's file counts only when the user named it or approved it as
//! it is, because a sandboxed program may have written it.

mod file;
mod key;
mod layer;
mod load;
mod open;
mod trust;
mod variables;
mod write;

pub(crate) use file::schema;

pub(crate) use key::{Key, Section};
pub(crate) use layer::{Beside, ImageWish, Layer, Origin, Sourced, VariableWish, said};
pub(crate) use load::{ConsultedFile, Loaded, Standing, Unapproved, load};
use open::search_upward;
pub(crate) use open::{FILE_NAME, OpenedFile, open_checked};
pub(crate) use trust::{approve, is_approved, withdraw};
pub(crate) use variables::refuse_misspelled_home;
pub(crate) use write::{OwnFile, Prepared};

use cofferdam_core::Result;
use std::path::Path;

/// What one opened file says. `~` in it is `home`.
pub(crate) fn read(file: &OpenedFile, home: Option<&Path>) -> Result<Layer> {
    file::read(&file.text, &file.path, home)
}
