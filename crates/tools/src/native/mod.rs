//! Cofferdam's own pack: everything that a session can do.

mod file;
mod sandbox;

use crate::tool::Row;
use crate::toolbox::Call;
use crate::{Outcome, native};
use cofferdam_core::{Error, ErrorKind, Result};

/// The pack.
pub(crate) const ROWS: &[Row] = &[sandbox::STATUS, file::READ, file::WRITE];

/// Calls one of them.
pub(crate) async fn call(name: &str, call: Call<'_>) -> Result<Outcome> {
    match name {
        "sandbox_status" => sandbox::status(call).await,
        "file_read" => native::file::read(call).await,
        "file_write" => native::file::write(call).await,
        other => Err(Error::new(ErrorKind::Unsupported, format!("the tool {other} does nothing"))),
    }
}
