//! The steps of a carry, as they come.

use super::super::failure::{Trouble, refused};
use super::super::talk::{Gone, Talk};
use cofferdam_wire::files::{STEP_HEAD_BYTES, Step, Why, step_length};

/// What is sent with a request, as one stream of bytes.
pub(super) struct Stream<'a> {
    talk: &'a mut Talk,
    piece: Vec<u8>,
    /// How much of the piece is taken.
    taken: usize,
}

impl<'a> Stream<'a> {
    pub(super) fn new(talk: &'a mut Talk) -> Self {
        Self { talk, piece: Vec::new(), taken: 0 }
    }

    /// The next step; `None` where they end.
    pub(super) fn next(&mut self) -> Result<Option<Step>, Trouble> {
        if self.rest()?.is_empty() {
            return Ok(None);
        }
        let head = self.take(STEP_HEAD_BYTES)?;
        let length = head.first_chunk().and_then(|head| step_length(*head));
        let text = self.take(length.ok_or_else(|| broken("a step is too long"))?)?;
        let step = serde_json::from_slice(&text).map_err(|_| broken("a step is not understood"))?;
        Ok(Some(step))
    }

    /// So many bytes of a file, a piece at a time.
    pub(super) fn bytes<E: From<Trouble>>(
        &mut self,
        mut count: u64,
        mut put: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while count > 0 {
            let rest = self.rest()?;
            let most = usize::try_from(count).unwrap_or(usize::MAX).min(rest.len());
            let part = rest.get(..most).filter(|part| !part.is_empty());
            put(part.ok_or_else(|| broken("it ends within a file"))?)?;
            self.taken += most;
            count -= most as u64;
        }
        Ok(())
    }

    fn take(&mut self, count: usize) -> Result<Vec<u8>, Trouble> {
        let mut all = Vec::with_capacity(count);
        self.bytes(count as u64, |part| {
            all.extend_from_slice(part);
            Ok::<(), Trouble>(())
        })?;
        Ok(all)
    }

    /// What is left of the piece, or the next one; nothing at the end.
    fn rest(&mut self) -> Result<&[u8], Trouble> {
        while self.taken >= self.piece.len() {
            let next: Result<Option<&[u8]>, Gone> = self.talk.next_piece();
            let Some(piece) = next? else { return Ok(&[]) };
            self.piece.clear();
            self.piece.extend_from_slice(piece);
            self.taken = 0;
        }
        Ok(self.piece.get(self.taken..).unwrap_or_default())
    }
}

fn broken(what: &str) -> Trouble {
    refused(Why::BadRequest, what).into()
}
