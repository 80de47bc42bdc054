//! The operating system's keyring: the Secret Service on the bus of this user's session.
//!
//! One item is kept there, the key of a store. It goes over the bus as it is: who can listen there is this
//! user, who can ask the service for it as well.

mod bus;
mod message;

use bus::{Answer, Bus, Unanswered};
use cofferdam_core::{Error, ErrorKind, Result};
use message::{Call, Reader, Writer};
use std::io;
use zeroize::Zeroizing;

const DESTINATION: &str = "org.freedesktop.secrets";
const SERVICE_PATH: &str = "/org/freedesktop/secrets";
const SERVICE: &str = "org.freedesktop.Secret.Service";
const COLLECTION: &str = "org.freedesktop.Secret.Collection";
const ITEM: &str = "org.freedesktop.Secret.Item";
/// What stands for no object.
const NONE: &str = "/";
/// What people see the item as.
const LABEL: &str = "Cofferdam: key of the secrets";

/// A keyring that answered.
#[derive(Debug)]
pub(crate) struct Keyring {
    bus: Bus,
    /// What secrets are passed in.
    session: String,
    /// Where new items go.
    collection: String,
}

/// What there is instead of a keyring.
#[derive(Debug)]
pub(crate) enum NoKeyring {
    /// None, and why.
    Absent(String),
    /// One that cannot be used, which is nothing to pass over.
    Unusable(Error),
}

impl Keyring {
    /// That of the session whose bus has this address.
    pub(crate) fn connect(address: Option<&str>) -> std::result::Result<Self, NoKeyring> {
        let Some(address) = address else {
            return Err(NoKeyring::Absent("DBUS_SESSION_BUS_ADDRESS is not set".to_owned()));
        };
        let absent = |error: io::Error| NoKeyring::Absent(error.to_string());
        let mut bus = Bus::connect(address).map_err(absent)?;
        let open = service("OpenSession", "sv");
        let body = Writer::new().text("plain").signature("s").text("");
        let session = match bus.call(&open, body) {
            Ok(answer) => session_of(&answer).ok_or_else(|| unusable("open a session", None))?,
            // Nobody has the name, and nobody can be started for it.
            Err(Unanswered::Refused(name)) => return Err(NoKeyring::Absent(name)),
            Err(Unanswered::Broken(error)) => return Err(absent(error)),
        };
        let body = Writer::new().text("default");
        let alias = bus.call(&service("ReadAlias", "s"), body);
        let alias = said("find its default collection", alias)?;
        let collection = Reader::new(&alias.1).text().map(str::to_owned);
        match collection.filter(|path| path != NONE) {
            Some(collection) => Ok(Self { bus, session, collection }),
            None => Err(NoKeyring::Absent("the keyring has no default collection".to_owned())),
        }
    }

    /// What is kept for this store, if anything is.
    pub(crate) fn get(&mut self, store: &str) -> Result<Option<Zeroizing<Vec<u8>>>> {
        let Some(item) = self.item(store)? else { return Ok(None) };
        let body = Writer::new().array(4, |items| items.text(&item)).text(&self.session);
        let answer = self.bus.call(&service("GetSecrets", "aoo"), body);
        let (_, body) = said("read the key", answer)?;
        match secret_of(&body) {
            Some(value) => Ok(Some(value)),
            None => Err(fault("read the key", None)),
        }
    }

    /// Keeps this for a store, in the place of what was.
    pub(crate) fn put(&mut self, store: &str, value: &[u8]) -> Result<()> {
        self.check_unlocked()?;
        let path = self.collection.clone();
        let create = call(&path, COLLECTION, "CreateItem", "a{sv}(oayays)b");
        let body = Writer::new().array(8, |all| {
            let all = all.align(8).text("org.freedesktop.Secret.Item.Label");
            let all = all.signature("s").text(LABEL);
            let all = all.align(8).text("org.freedesktop.Secret.Item.Attributes");
            all.signature("a{ss}").map(&attributes(store))
        });
        let body = body.align(8).text(&self.session).bytes(b"").bytes(value).text("text/plain");
        // In the place of one with these attributes.
        let answer = self.bus.call(&create, body.number(1));
        let (_, body) = said("keep the key", answer)?;
        let mut reader = Reader::new(&body);
        match (reader.text(), reader.text()) {
            (Some(item), Some(NONE)) if item != NONE => Ok(()),
            // It wants to ask somebody first.
            (Some(_), Some(_)) => Err(locked()),
            _ => Err(fault("keep the key", None)),
        }
    }

    /// Forgets what is kept for this store.
    pub(crate) fn remove(&mut self, store: &str) -> Result<()> {
        let Some(item) = self.item(store)? else { return Ok(()) };
        let answer = self.bus.call(&call(&item, ITEM, "Delete", ""), Writer::new());
        let (_, body) = said("forget the key", answer)?;
        match Reader::new(&body).text() {
            Some(NONE) => Ok(()),
            Some(_) => Err(locked()),
            None => Err(fault("forget the key", None)),
        }
    }

    /// The item of a store. One that is locked is an error: nobody is asked for a password here.
    fn item(&mut self, store: &str) -> Result<Option<String>> {
        let body = Writer::new().map(&attributes(store));
        let answer = self.bus.call(&service("SearchItems", "a{ss}"), body);
        let (_, body) = said("look for the key", answer)?;
        let mut reader = Reader::new(&body);
        let (Some(unlocked), Some(closed)) = (reader.texts(), reader.texts()) else {
            return Err(fault("look for the key", None));
        };
        match (unlocked.first(), closed.first()) {
            (Some(item), _) => Ok(Some((*item).to_owned())),
            (None, Some(_)) => Err(locked()),
            (None, None) => {
                // Some services find nothing in what is locked.
                self.check_unlocked()?;
                Ok(None)
            }
        }
    }

    fn check_unlocked(&mut self) -> Result<()> {
        let path = self.collection.clone();
        let get = call(&path, "org.freedesktop.DBus.Properties", "Get", "ss");
        let body = Writer::new().text(COLLECTION).text("Locked");
        let (_, body) = said("ask whether it is locked", self.bus.call(&get, body))?;
        let mut reader = Reader::new(&body);
        match (reader.signature(), reader.number()) {
            (Some("b"), Some(0)) => Ok(()),
            (Some("b"), Some(_)) => Err(locked()),
            _ => Err(fault("ask whether it is locked", None)),
        }
    }

    /// Locks all that is open.
    #[cfg(test)]
    pub(crate) fn lock(&mut self) {
        let path = self.collection.clone();
        let body = Writer::new().array(4, |all| all.text(&path));
        self.bus.call(&service("Lock", "ao"), body).unwrap();
    }
}

/// By what the item of a store is found again.
fn attributes(store: &str) -> [(&'static str, &str); 2] {
    [("application", "cofferdam"), ("store", store)]
}

fn call<'a>(path: &'a str, interface: &'a str, member: &'a str, signature: &'a str) -> Call<'a> {
    Call { destination: DESTINATION, path, interface, member, signature }
}

fn service<'a>(member: &'a str, signature: &'a str) -> Call<'a> {
    call(SERVICE_PATH, SERVICE, member, signature)
}

/// The path of the session that was opened, behind a value that the plain way has no use for.
fn session_of((signature, body): &Answer) -> Option<String> {
    let mut reader = Reader::new(body);
    if signature != "vo" || reader.signature()? != "s" {
        return None;
    }
    reader.text()?;
    reader.text().map(str::to_owned)
}

/// The value of the first item in a map of them.
fn secret_of(body: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let mut items = Reader::new(body).array(8)?;
    let _item = items.text()?;
    items.align(8)?;
    let (_session, _parameters) = (items.text()?, items.bytes()?);
    items.bytes().map(|value| Zeroizing::new(value.to_vec()))
}

fn said(what: &str, answer: std::result::Result<Answer, Unanswered>) -> Result<Answer> {
    answer.map_err(|error| match error {
        Unanswered::Refused(name) if name.ends_with(".IsLocked") => locked(),
        Unanswered::Refused(name) => fault(what, Some(io::Error::other(name))),
        Unanswered::Broken(error) => fault(what, Some(error)),
    })
}

fn unusable(what: &str, error: Option<io::Error>) -> NoKeyring {
    NoKeyring::Unusable(fault(what, error))
}

impl From<Error> for NoKeyring {
    fn from(error: Error) -> Self {
        Self::Unusable(error)
    }
}

fn fault(what: &str, error: Option<io::Error>) -> Error {
    let fault = Error::new(ErrorKind::Unavailable, format!("the keyring of this session: {what}"))
        .hint("Look whether it works for other programs, and try again.");
    match error {
        Some(error) => fault.source(error),
        None => fault,
    }
}

fn locked() -> Error {
    Error::new(ErrorKind::Denied, "the keyring of this session is locked")
        .hint("Unlock it, as by logging in at the desktop or with its own program, and try again.")
}
