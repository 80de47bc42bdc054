//! Secrets by name and owner.

use crate::entry::{Head, MAX_FILE_BYTES, MAX_LEAD_BYTES, decode, encode, head_told};
use crate::keys::{KeyPlace, Keys};
use crate::place::{Place, foreign};
use crate::seal::Key;
use cofferdam_core::secret::{GivenSecret, SecretName, SecretValue, SecretWish};
use cofferdam_core::{Error, ErrorKind, Result, hexadecimal};
use ring::digest::{SHA256, digest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// How many secrets an owner may have.
pub const MAX_SECRETS: usize = 1000;
/// The longest owner, in bytes.
const MAX_OWNER_BYTES: usize = 256;
/// The directory of a store, below the state directory.
const DIRECTORY: &str = "secrets";
/// Ends the name of a secret's file.
const SUFFIX: &str = ".secret";

/// A secret, without its value. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretReport {
    /// Its name.
    pub name: String,
    /// When it was added first, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it got the value that it has, in milliseconds since 1970.
    pub changed_ms: u64,
}

/// The secrets of an owner, as far as they can be read.
#[derive(Debug)]
pub struct Listed {
    /// Those that are whole, by name.
    pub secrets: Vec<SecretReport>,
    /// What is wrong with each other file that is theirs or may be.
    pub damaged: Vec<Error>,
}

/// The secrets below one state directory.
#[derive(Debug)]
pub struct SecretStore {
    pub(crate) place: Place,
    /// The bus on which a keyring would be.
    bus: Option<String>,
    /// How many secrets an owner may have.
    pub(crate) most: usize,
}

impl SecretStore {
    /// Opens the store of a state directory, which must be there. Made where it is missing. Its keyring is
    /// that of the session in which this process runs.
    pub fn open(state: &Path) -> Result<Self> {
        Self::open_within(state, std::env::var("DBUS_SESSION_BUS_ADDRESS").ok())
    }

    /// Whether a state directory has a store: opening one makes it.
    pub fn is_at(state: &Path) -> bool {
        std::fs::symlink_metadata(state.join(DIRECTORY)).is_ok()
    }

    /// The same, with the keyring on the bus with this address, written as in
    /// `DBUS_SESSION_BUS_ADDRESS`; without one its key is in a file.
    pub fn open_within(state: &Path, bus: Option<String>) -> Result<Self> {
        let bus = bus.filter(|address| !address.is_empty());
        Ok(Self { place: Place::open(&state.join(DIRECTORY))?, bus, most: MAX_SECRETS })
    }

    /// Where the key is that all values are opened with; none before the first is added.
    pub fn key_place(&self) -> Result<Option<KeyPlace>> {
        self.keys().whereabouts()
    }

    /// Keeps the key somewhere else from now on. Where it is there already, nothing happens.
    pub fn move_key(&self, to: KeyPlace) -> Result<()> {
        let lock = self.place.lock()?;
        self.keys().move_to(&lock, to)
    }

    fn keys(&self) -> Keys<'_> {
        Keys { place: &self.place, bus: self.bus.as_deref() }
    }

    /// Adds a secret, or gives one that is there another value.
    ///
    /// `owner` is whose it is, as the store of sessions has it: empty for the local user. Secrets of one
    /// owner do not exist for another. `now_ms` is the time, in milliseconds since 1970.
    pub fn put(
        &self,
        owner: &str,
        name: &SecretName,
        value: &SecretValue,
        now_ms: u64,
    ) -> Result<SecretReport> {
        if owner.len() > MAX_OWNER_BYTES {
            return Err(Error::new(ErrorKind::Usage, "the owner's name is too long"));
        }
        let lock = self.place.lock()?;
        let key = self.keys().find_or_make(&lock)?;
        let created_ms = match self.read(&key, owner, name)? {
            Some((head, _)) => head.created_ms,
            None if self.count(&key, owner)? >= self.most => {
                let what = format!("there are {} secrets already", self.most);
                return Err(Error::new(ErrorKind::Conflict, what)
                    .hint("Remove some of them with `cofferdam secret rm`."));
            }
            None => now_ms,
        };
        let owner = owner.to_owned();
        let head = Head { owner, name: name.clone(), created_ms, changed_ms: now_ms };
        let file = encode(&key, &head, value)?;
        self.place.write(&lock, &file_name(&head.owner, name), &file)?;
        Ok(report(head))
    }

    /// Whether an owner has such a secret. Fails where it is damaged.
    pub fn has(&self, owner: &str, name: &SecretName) -> Result<bool> {
        let Some(key) = self.keys().find()? else { return Ok(false) };
        self.read(&key, owner, name).map(|found| found.is_some())
    }

    /// The value of a secret.
    pub fn value(&self, owner: &str, name: &SecretName) -> Result<SecretValue> {
        let found = match self.keys().find()? {
            Some(key) => self.read(&key, owner, name)?,
            None => None,
        };
        found.map(|(_, value)| value).ok_or_else(|| no_such(name))
    }

    /// What a command of this owner is to be given.
    pub fn given(&self, owner: &str, wishes: &[SecretWish]) -> Result<Vec<GivenSecret>> {
        let given = |wish: &SecretWish| {
            let value = self.value(owner, &wish.name)?;
            Ok(GivenSecret { value, place: wish.place.clone() })
        };
        wishes.iter().map(given).collect()
    }

    /// The secrets of an owner, by name. Fails where one of them is damaged.
    pub fn list(&self, owner: &str) -> Result<Vec<SecretReport>> {
        let Listed { secrets, damaged } = self.look(owner)?;
        damaged.into_iter().next().map_or(Ok(secrets), Err)
    }

    /// The secrets of an owner, and what is damaged among them.
    pub fn look(&self, owner: &str) -> Result<Listed> {
        let mut listed = Listed { secrets: Vec::new(), damaged: Vec::new() };
        let Some(key) = self.keys().find()? else { return Ok(listed) };
        for (file_name, told) in self.told()? {
            match self.head(&key, owner, &file_name, told) {
                Ok(head) => listed.secrets.extend(head.map(report)),
                Err(error) => listed.damaged.push(error),
            }
        }
        listed.secrets.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(listed)
    }

    /// Removes a secret, damaged or not.
    pub fn remove(&self, owner: &str, name: &SecretName) -> Result<()> {
        let lock = self.place.lock()?;
        match self.place.remove(&lock, &file_name(owner, name))? {
            true => Ok(()),
            false => Err(no_such(name)),
        }
    }

    /// Removes all secrets of an owner, and says how many there were. Needs no key.
    pub fn remove_all(&self, owner: &str) -> Result<usize> {
        let lock = self.place.lock()?;
        let mut removed = 0;
        // What does not say whose it is stays.
        for (name, told) in self.told()? {
            if told?.is_some_and(|told| told.owner == owner) {
                removed += usize::from(self.place.remove(&lock, &name)?);
            }
        }
        Ok(removed)
    }

    fn read(
        &self,
        key: &Key,
        owner: &str,
        name: &SecretName,
    ) -> Result<Option<(Head, SecretValue)>> {
        let file_name = file_name(owner, name);
        let Some(file) = self.place.read(&file_name, MAX_FILE_BYTES)? else { return Ok(None) };
        match decode(key, &file) {
            Some(found) if found.0.owner == owner && found.0.name == *name => Ok(Some(found)),
            Some(_) => Err(foreign(&self.place.path(&file_name), "it is another secret's file")),
            None => Err(foreign(&self.place.path(&file_name), "its key does not open it")),
        }
    }

    /// The files of secrets, with what each says that it is, if it does. Nothing else is read of them, and no
    /// value is decrypted.
    fn told(&self) -> Result<Vec<(String, Result<Option<Head>>)>> {
        let mut all = Vec::new();
        for name in self.place.names()?.into_iter().filter(|name| name.ends_with(SUFFIX)) {
            let beginning = self.place.read_beginning(&name, MAX_LEAD_BYTES).transpose();
            all.extend(beginning.map(|read| (name, read.map(|beginning| head_told(&beginning)))));
        }
        Ok(all)
    }

    /// How many secrets an owner has, damaged or not.
    fn count(&self, key: &Key, owner: &str) -> Result<usize> {
        let of = |(file_name, told): (String, _)| self.head(key, owner, &file_name, told);
        let counts = |head: &Result<Option<Head>>| !matches!(head, Ok(None));
        Ok(self.told()?.into_iter().map(of).filter(counts).count())
    }

    /// What such a file is, if it is a secret of this owner. One that does not say whose it is may be theirs, and
    /// is damaged.
    fn head(
        &self,
        key: &Key,
        owner: &str,
        file_name: &str,
        told: Result<Option<Head>>,
    ) -> Result<Option<Head>> {
        let told = told?;
        if told.as_ref().is_some_and(|told| told.owner != owner) {
            return Ok(None);
        }
        let damaged = |why| {
            let error = foreign(&self.place.path(file_name), why);
            // It is in the clear and may be wrong, but no other secret has its file there.
            let told =
                told.as_ref().filter(|told| *file_name == self::file_name(owner, &told.name));
            match told {
                Some(Head { name, .. }) => error.hint(format!(
                    "It was secret {name}: remove it with `cofferdam secret rm {name}`, and add it anew."
                )),
                None => error,
            }
        };
        // Removed meanwhile.
        let Some(file) = self.place.read(file_name, MAX_FILE_BYTES)? else { return Ok(None) };
        let (head, _) = decode(key, &file).ok_or_else(|| damaged("its key does not open it"))?;
        if *file_name != self::file_name(&head.owner, &head.name) {
            return Err(damaged("it is another secret's file"));
        }
        Ok(Some(head).filter(|head| head.owner == owner))
    }
}

/// Any two owners and names have files of their own, whatever characters they are made of.
fn file_name(owner: &str, name: &SecretName) -> String {
    let text = [owner.as_bytes(), b"\0", name.as_str().as_bytes()].concat();
    let hash = digest(&SHA256, &text);
    format!("{}{SUFFIX}", hexadecimal(hash))
}

fn report(head: Head) -> SecretReport {
    let Head { owner: _, name, created_ms, changed_ms } = head;
    SecretReport { name: name.into(), created_ms, changed_ms }
}

fn no_such(name: &SecretName) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no secret {name}"))
        .hint("List the secrets with `cofferdam secret ls`, or add it with `cofferdam secret add`.")
}
