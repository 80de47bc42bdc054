//! Which address is which port of which sandbox.

use crate::http::auth::Caller;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::{Session, SessionId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// How many ports of one owner have an address at once.
pub(crate) const MAX_PORTS: usize = 64;
/// How many random bytes are in an address.
const TOKEN_BYTES: usize = 20;
/// The letters and digits of base32 (RFC 4648) as host names are compared.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// All addresses, by their words. They live as long as the server and the key by which they were opened.
#[derive(Debug, Default)]
pub(crate) struct Ports(Mutex<BTreeMap<String, Opened>>);

/// What an address is of.
#[derive(Debug, Clone)]
pub(crate) struct Opened {
    /// Who had it opened: it ends with that key.
    pub(crate) caller: Caller,
    /// The session, as its owner has it.
    pub(crate) session: Session,
    /// The port inside.
    pub(crate) port: u16,
}

impl Opened {
    /// The beginning of the key by which it was opened; `None` is the local user.
    pub(super) fn key(&self) -> Option<&str> {
        key_of(&self.caller)
    }
}

fn key_of(caller: &Caller) -> Option<&str> {
    caller.key.as_ref().map(|key| key.prefix.as_str())
}

impl Ports {
    /// The word of the address of a port: the one that it has, or a new one. Says whether it is new.
    pub(super) fn open(&self, wanted: Opened) -> Result<(String, bool)> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_own = |known: &Opened| known.key() == wanted.key();
        let same = |known: &Opened| {
            is_own(known) && known.session.id() == wanted.session.id() && known.port == wanted.port
        };
        if let Some((word, _)) = all.iter().find(|(_, known)| same(known)) {
            return Ok((word.clone(), false));
        }
        if all.values().filter(|known| is_own(known)).count() >= MAX_PORTS {
            let what = format!("{MAX_PORTS} ports of this caller have an address already");
            return Err(Error::new(ErrorKind::Conflict, what).hint("Close one of them first."));
        }
        let word = random_word()?;
        all.insert(word.clone(), wanted);
        Ok((word, true))
    }

    /// The sessions of the caller's addresses, where it can have no more; nothing where there is room.
    pub(super) fn in_the_way(&self, caller: &Caller) -> Vec<Session> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = all.values().filter(|known| known.key() == key_of(caller));
        let own: Vec<&Session> = own.map(|known| &known.session).collect();
        if own.len() < MAX_PORTS {
            return Vec::new();
        }
        let by_id: BTreeMap<&str, &Session> =
            own.into_iter().map(|session| (session.id().as_str(), session)).collect();
        by_id.into_values().cloned().collect()
    }

    /// What the address with this word is of.
    pub(super) fn of_word(&self, word: &str) -> Option<Opened> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(word).cloned()
    }

    /// The ports of a session that have an address, with the words.
    pub(super) fn of_session(&self, session: &SessionId) -> Vec<(u16, String)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of = all.iter().filter(|(_, known)| known.session.id() == session);
        let mut found: Vec<_> = of.map(|(word, known)| (known.port, word.clone())).collect();
        found.sort_unstable();
        found
    }

    /// Takes the address from a port. `false` where it has none.
    pub(super) fn close(&self, session: &SessionId, port: u16) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.len();
        all.retain(|_, known| known.session.id() != session || known.port != port);
        all.len() < before
    }

    /// The keys by which there are addresses.
    pub(super) fn keys(&self) -> BTreeSet<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.values().filter_map(|known| known.key().map(str::to_owned)).collect()
    }

    /// Takes the addresses from all ports that were opened by a key.
    pub(super) fn forget_key(&self, prefix: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, known| known.key() != Some(prefix));
    }

    /// Takes the addresses from all ports of a session that is gone.
    pub(super) fn forget(&self, session: &SessionId) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, known| known.session.id() != session);
    }
}

/// 160 random bits as a label of a host name.
fn random_word() -> Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let flags = rustix::rand::GetRandomFlags::empty();
        filled += rustix::rand::getrandom(rest, flags).map_err(|errno| {
            Error::new(ErrorKind::Io, "ask the kernel for random bytes")
                .source(std::io::Error::from(errno))
        })?;
    }
    let mut word = String::with_capacity(bytes.len() * 8 / 5);
    for five in bytes.chunks(5) {
        let bits = five.iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        for place in (0..8).rev() {
            let index = usize::try_from(bits >> (place * 5) & 31).unwrap_or(0);
            word.push(LETTERS.get(index).copied().map_or('a', char::from));
        }
    }
    Ok(word)
}

/// The length of every word.
pub(super) const WORD_LENGTH: usize = TOKEN_BYTES * 8 / 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_labels_and_no_two_are_the_same() {
        let words: BTreeSet<String> = (0..200).map(|_| random_word().unwrap()).collect();
        assert_eq!(words.len(), 200);
        for word in words {
            assert_eq!(word.len(), WORD_LENGTH);
            assert!(word.bytes().all(|byte| LETTERS.contains(&byte)), "{word}");
        }
    }
}
