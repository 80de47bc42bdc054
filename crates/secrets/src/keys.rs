//! The key that values are encrypted with, and the one that it is encrypted with itself.
//!
//! The outer one is in the keyring of the user's session where there is one, and else in a file. Where it
//! is does not change by itself: a store whose key is in a keyring is closed while that is.

use crate::keyring::{Keyring, NoKeyring};
use crate::place::{Place, WriteLock, foreign};
use crate::seal::{KEY_BYTES, Key, fill, open, random_key, seal};
use cofferdam_core::{Error, ErrorKind, Result, hexadecimal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// The file with the outer key, or with where it is.
const KEY: &str = "key";
/// Begins it where the key is in it.
const KEY_LEAD: &str = "cofferdam secret key 1\n";
/// Follows the key where a keyring may have it, too, by the name that follows: it is on its way there or from
/// there.
const ALSO_LEAD: &str = "and in keyring ";
/// Begins it where the key is in a keyring, by the name that follows.
const KEYRING_LEAD: &str = "cofferdam secret key in keyring 1\n";
/// How long such a name is.
const NAME_BYTES: usize = 16;
/// The file with the inner key, encrypted by the outer one.
const DATA_KEY: &str = "data-key";
/// What the inner key is sealed with.
const DATA_KEY_ABOUT: &[u8] = b"cofferdam data key 1";
/// More than either file has.
const MOST: usize = 256;

/// Where the outer key of a store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeyPlace {
    /// In a file of mode 0600 beside the secrets.
    File,
    /// In the operating system's keyring.
    Keyring,
}

/// What the file about the outer key says.
enum Outer {
    /// It is in it.
    Here {
        /// The key.
        key: Key,
        /// Where a keyring may have it, too.
        also: Option<String>,
    },
    /// The name that it has in a keyring.
    InKeyring(String),
}

/// The keys of a store, and the bus on which its keyring would be.
#[derive(Debug)]
pub(crate) struct Keys<'a> {
    pub(crate) place: &'a Place,
    pub(crate) bus: Option<&'a str>,
}

impl Keys<'_> {
    /// The key of a store. `None` where it has none yet.
    pub(crate) fn find(&self) -> Result<Option<Key>> {
        let outer = self.outer()?;
        let sealed = self.place.read(DATA_KEY, MOST)?;
        let (outer, sealed) = match (outer, sealed) {
            (Some(outer), Some(sealed)) => (outer, sealed),
            // A crash between the two leaves a key that opens nothing yet.
            (None | Some(_), None) => return Ok(None),
            (None, Some(_)) => {
                let what = format!("there is no key at {}", self.place.path(KEY).display());
                return Err(Error::new(ErrorKind::NotFound, what).hint(
                    "Put it back from where you keep copies; without it the secrets have to be added anew, in an empty directory.",
                ));
            }
        };
        let outer = self.resolved(outer)?;
        let damaged = || foreign(&self.place.path(DATA_KEY), "the key beside it does not open it");
        let inner = open(&outer, DATA_KEY_ABOUT, &sealed).ok_or_else(damaged)?;
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        if inner.len() != KEY_BYTES {
            return Err(damaged());
        }
        key.copy_from_slice(&inner);
        Ok(Some(key))
    }

    /// The key of a store, which is made where there is none.
    pub(crate) fn find_or_make(&self, lock: &WriteLock) -> Result<Key> {
        if let Some(key) = self.find()? {
            return Ok(key);
        }
        let outer = random_key()?;
        // ORDER: the key before what it opens.
        match Keyring::connect(self.bus) {
            Ok(mut keyring) => {
                let name = fresh_name()?;
                self.keep_in_keyring(lock, &mut keyring, (&name, &outer)).inspect_err(|_| {
                    if matches!(self.outer(), Ok(None)) {
                        let _ = keyring.remove(&name);
                    }
                })?;
            }
            Err(NoKeyring::Absent(_)) => self.keep_in_file(lock, &outer, None)?,
            Err(NoKeyring::Unusable(error)) => return Err(error),
        }
        let inner = random_key()?;
        self.place.write(lock, DATA_KEY, &seal(&outer, DATA_KEY_ABOUT, inner.as_slice())?)?;
        Ok(inner)
    }

    /// Where the outer key is. `None` where there is none yet. Asks no keyring.
    pub(crate) fn whereabouts(&self) -> Result<Option<KeyPlace>> {
        Ok(self.outer()?.map(|outer| match outer {
            Outer::Here { .. } => KeyPlace::File,
            Outer::InKeyring(_) => KeyPlace::Keyring,
        }))
    }

    /// Keeps the outer key somewhere else. Made first where there is none.
    pub(crate) fn move_to(&self, lock: &WriteLock, to: KeyPlace) -> Result<()> {
        self.find_or_make(lock)?;
        match (self.outer()?, to) {
            (Some(Outer::Here { key, also }), KeyPlace::Keyring) => {
                let mut keyring = self.keyring()?;
                let name = also.map_or_else(fresh_name, Ok)?;
                // ORDER: what is there after a crash is known before it is there.
                self.keep_in_file(lock, &key, Some(&name))?;
                self.keep_in_keyring(lock, &mut keyring, (&name, &key)).inspect_err(|_| {
                    // A next one begins from here as well.
                    if self.is_here() && keyring.remove(&name).is_ok() {
                        let _ = self.keep_in_file(lock, &key, None);
                    }
                })
            }
            (Some(Outer::InKeyring(name)), KeyPlace::File) => {
                let key = self.resolved(Outer::InKeyring(name.clone()))?;
                // ORDER: kept in the new place before it is forgotten in the old one, which is known until then.
                self.keep_in_file(lock, &key, Some(&name))?;
                self.forget(lock, &name, &key)
            }
            (Some(Outer::Here { key, also: Some(name) }), KeyPlace::File) => {
                self.forget(lock, &name, &key)
            }
            (Some(Outer::Here { also: None, .. }), KeyPlace::File)
            | (Some(Outer::InKeyring(_)), KeyPlace::Keyring)
            | (None, _) => Ok(()),
        }
    }

    /// Has a keyring forget what the file has.
    fn forget(&self, lock: &WriteLock, name: &str, key: &Key) -> Result<()> {
        self.keyring()?.remove(name)?;
        self.keep_in_file(lock, key, None)
    }

    /// Whether the key is certainly in the file.
    fn is_here(&self) -> bool {
        matches!(self.outer(), Ok(Some(Outer::Here { .. })))
    }

    fn keep_in_file(&self, lock: &WriteLock, key: &Key, also: Option<&str>) -> Result<()> {
        let mut text = text_of(key);
        if let Some(name) = also {
            // Where it is put it has room: what grows would leave copies behind.
            let mut longer = Zeroizing::new(String::with_capacity(MOST));
            longer.push_str(&text);
            for part in [ALSO_LEAD, name, "\n"] {
                longer.push_str(part);
            }
            text = longer;
        }
        self.place.write(lock, KEY, text.as_bytes())
    }

    /// Keeps the key by this name. Where it fails the file says what it said, or that the keyring has it.
    fn keep_in_keyring(
        &self,
        lock: &WriteLock,
        keyring: &mut Keyring,
        (name, key): (&str, &Key),
    ) -> Result<()> {
        keyring.put(name, text_of(key).as_bytes())?;
        // ORDER: what the file says of it only once it is certain that it can be had back.
        let is_kept = keyring.get(name)?.is_some_and(|kept| parse(&kept).as_ref() == Some(key));
        if !is_kept {
            let what = "the keyring of this session does not keep what it is given";
            return Err(Error::new(ErrorKind::Unavailable, what)
                .hint("Look whether it works for other programs, and try again."));
        }
        let text = format!("{KEYRING_LEAD}{name}\n");
        self.place.write(lock, KEY, text.as_bytes())
    }

    fn outer(&self) -> Result<Option<Outer>> {
        let Some(text) = self.place.read(KEY, MOST)? else { return Ok(None) };
        let outer = match name_in_keyring(&text) {
            Some(name) => Some(Outer::InKeyring(name)),
            None => here(&text),
        };
        outer.map(Some).ok_or_else(|| foreign(&self.place.path(KEY), "it is no key"))
    }

    fn resolved(&self, outer: Outer) -> Result<Key> {
        let name = match outer {
            Outer::Here { key, .. } => return Ok(key),
            Outer::InKeyring(name) => name,
        };
        match self.keyring()?.get(&name)? {
            Some(text) => parse(&text).ok_or_else(|| {
                Error::new(ErrorKind::Conflict, "what the keyring keeps for the secrets is no key")
                    .hint("Put the item `Cofferdam: key of the secrets` back from a copy.")
            }),
            None => Err(Error::new(ErrorKind::NotFound, "the keyring of this session has no key for the secrets")
                .hint("Use the keyring in which they were added first, or put its item `Cofferdam: key of the secrets` back; without it the secrets have to be added anew, in an empty directory.")),
        }
    }

    /// The keyring, where there has to be one.
    fn keyring(&self) -> Result<Keyring> {
        Keyring::connect(self.bus).map_err(|error| match error {
            NoKeyring::Unusable(error) => error,
            NoKeyring::Absent(why) => {
                let what = format!("the keyring of this session cannot be reached: {why}");
                Error::new(ErrorKind::Unavailable, what).hint(
                    "Start it from your desktop's session, or run `cofferdam secret key --move-to file` there once.",
                )
            }
        })
    }
}

fn text_of(key: &Key) -> Zeroizing<String> {
    let digits = Zeroizing::new(hexadecimal(key.as_slice()));
    Zeroizing::new(format!("{KEY_LEAD}{}\n", digits.as_str()))
}

fn fresh_name() -> Result<String> {
    let mut name = [0; NAME_BYTES];
    fill(&mut name)?;
    Ok(hexadecimal(name))
}

/// A file with the key in it.
fn here(text: &[u8]) -> Option<Outer> {
    if let Some(key) = parse(text) {
        return Some(Outer::Here { key, also: None });
    }
    let end = KEY_LEAD.len() + KEY_BYTES * 2 + 1;
    let (first, rest) = text.split_at_checked(end)?;
    let name = name_behind(ALSO_LEAD, rest)?;
    Some(Outer::Here { key: parse(first)?, also: Some(name) })
}

fn parse(text: &[u8]) -> Option<Key> {
    let digits = text.strip_prefix(KEY_LEAD.as_bytes())?.strip_suffix(b"\n")?;
    if digits.len() != KEY_BYTES * 2 {
        return None;
    }
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    let value = |digit: u8| char::from(digit).to_digit(16).and_then(|n| u8::try_from(n).ok());
    for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        let (high, low) = (pair.first().copied()?, pair.last().copied()?);
        *byte = value(high)? << 4 | value(low)?;
    }
    Some(key)
}

fn name_in_keyring(text: &[u8]) -> Option<String> {
    name_behind(KEYRING_LEAD, text)
}

fn name_behind(lead: &str, text: &[u8]) -> Option<String> {
    let name = text.strip_prefix(lead.as_bytes())?.strip_suffix(b"\n")?;
    let is_name = name.len() == NAME_BYTES * 2 && name.iter().all(u8::is_ascii_hexdigit);
    is_name.then(|| String::from_utf8_lossy(name).into_owned())
}
