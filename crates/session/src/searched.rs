//! Searches of a session's workspace, and several files at once, as objects of bounded size.

use crate::Session;
use crate::objects::{
    FileContent, FileContents, FileEntry, FileLeftOut, FileMatches, FileNames, MatchedFile,
    OneContent,
};
use cofferdam_core::Result;
use cofferdam_core::files::{ByteString, ReadMany, WholeFile};
use cofferdam_search::{FileHits, Found, Glob, Grep, LeftOut, Line, Reason, Search};
use std::ops::ControlFlow;

/// How many names are told at once, unless fewer are asked for.
pub const MAX_TOLD_NAMES: u64 = 10_000;
/// How many matches are told at once, unless fewer are asked for.
pub const MAX_TOLD_MATCHES: u64 = 10_000;
/// The most bytes of files or lines in one object.
pub const MAX_TOLD_BYTES: u64 = 16 << 20;

/// What a line takes in an object beside its text.
const LINE_BYTES: u64 = 100;

impl Session {
    /// The names that match, at most [`MAX_TOLD_NAMES`] of them. What is left out is said.
    pub async fn glob(&self, order: &Glob) -> Result<FileNames> {
        let max_matches = Some(order.max_matches.unwrap_or(MAX_TOLD_NAMES).min(MAX_TOLD_NAMES));
        let order = Glob { max_matches, ..order.clone() };
        let mut entries = Vec::new();
        let mut each = |found: Found| {
            entries.push(FileEntry::of_path(found.path.as_os_str(), &found.entry));
            ControlFlow::Continue(())
        };
        let searched = Search::new(self.files()).glob(&order, &mut each).await?;
        let (session, left_out) = (self.id().to_string(), FileLeftOut::all(&searched.left_out));
        Ok(FileNames { session, entries, left_out })
    }

    /// The lines that match, at most [`MAX_TOLD_MATCHES`] of them and [`MAX_TOLD_BYTES`]. What is left out
    /// is said.
    pub async fn grep(&self, order: &Grep) -> Result<FileMatches> {
        let most = order.max_matches.unwrap_or(MAX_TOLD_MATCHES).min(MAX_TOLD_MATCHES);
        let order = Grep { max_matches: Some(most), ..order.clone() };
        let (mut files, mut bytes, mut matches, mut cut) = (Vec::new(), 0, 0, None);
        let mut each = |hits: FileHits| {
            let size = |line: &Line| line.bytes.len() as u64 + LINE_BYTES;
            bytes += hits.lines.iter().map(size).sum::<u64>() + hits.path.as_bytes().len() as u64;
            if bytes > MAX_TOLD_BYTES {
                cut = Some(hits.path);
                return ControlFlow::Break(());
            }
            matches += hits.matches;
            files.push(MatchedFile::new(hits));
            ControlFlow::Continue(())
        };
        let mut searched = Search::new(self.files()).grep(&order, &mut each).await?;
        if let Some(first) = cut {
            searched.left_out.push(LeftOut { reason: Reason::TooManyMatches, count: 1, first });
        }
        Ok(FileMatches {
            session: self.id().to_string(),
            files,
            matches,
            files_searched: searched.files,
            left_out: FileLeftOut::all(&searched.left_out),
        })
    }

    /// Several whole files, each with its content or why there is none: of at most so many bytes each, and
    /// of [`MAX_TOLD_BYTES`] together.
    pub async fn read_many(
        &self,
        paths: &[ByteString],
        max_bytes: Option<u64>,
    ) -> Result<FileContents> {
        let max_bytes = max_bytes.unwrap_or(MAX_TOLD_BYTES).min(MAX_TOLD_BYTES);
        let order = ReadMany { paths: paths.to_vec(), max_bytes, total_bytes: MAX_TOLD_BYTES };
        let all = self.files().read_many(&order).await?;
        let files = paths.iter().zip(all).map(|(path, one)| {
            let path = path.as_os_str();
            match one {
                Ok(WholeFile { read, bytes }) => {
                    OneContent::read(path, FileContent::new(self, path, 0, &read, bytes))
                }
                Err(error) => OneContent::failed(path, &error),
            }
        });
        Ok(FileContents { session: self.id().to_string(), files: files.collect() })
    }
}
