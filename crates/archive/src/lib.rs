//! Archives of a workspace: a tar archive out of it, and one into it.
//!
//! [`export`] and [`import`] work over [`Files`](cofferdam_core::Files), so nothing of the workspace is
//! opened on the host. Both sides are hostile: what an export reads comes from inside, and an archive
//! that is to be imported comes from anybody. [`Checked::read`] looks at all of it before a sandbox hears
//! of it; then it is carried out whole or not at all.

mod checked;
mod compression;
mod export;
mod extension;
mod header;
mod import;
mod members;
mod notes;
#[cfg(test)]
mod tests;

pub use checked::{Checked, MAX_ARCHIVE_BYTES, MAX_ARCHIVE_ENTRIES};
pub use compression::{Packing, REPACK, Unpacked, refuse_others, unpacked};
pub use export::{Export, Exported, MAX_EXPORT_ENTRIES, export};
pub use extension::MAX_EXTENSION_BYTES;
pub use import::{Import, Imported, Over, import};
pub use members::{Archived, ArchivedFile};
pub use notes::{MAX_NOTES, Note, Notes, Remark};
