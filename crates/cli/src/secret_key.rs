//! Where the key is that all secrets are opened with, for those who want to know what holds.

use crate::secrets;
use cofferdam_core::Result;
use cofferdam_local::doctor::{Fact, State};
use cofferdam_secrets::KeyPlace;

const MOVE: &str = "cofferdam secret key --move-to keyring (in a desktop's session, with GNOME Keyring, KWallet or \
                    KeePassXC)";

/// As a fact about this host. Makes nothing, and asks no keyring.
pub(crate) fn fact() -> Fact {
    fact_of(secrets::key_place())
}

/// As a remark on a sandbox that has secrets.
pub(crate) fn note() -> String {
    let Fact { found, consequence, remedy, .. } = fact();
    let remedy = remedy.map_or_else(String::new, |remedy| format!("; move it with {remedy}"));
    format!("the key of the secrets is {found}: {consequence}{remedy}")
}

fn fact_of(place: Result<Option<KeyPlace>>) -> Fact {
    let (state, found, consequence, remedy) = match place {
        Ok(Some(KeyPlace::Keyring)) => (
            State::Ok,
            "in the keyring of your session".to_owned(),
            "who reads the files of the secrets can open none of them",
            None,
        ),
        Ok(Some(KeyPlace::File)) => (
            State::Missing,
            "in a file beside the secrets, not in a keyring".to_owned(),
            "who reads all your files, or a copy of them, can open the secrets",
            Some(MOVE.to_owned()),
        ),
        Ok(None) => (
            State::Ok,
            "not made yet: no secret was added".to_owned(),
            "it will be in the keyring of your session where one answers, and else in a file",
            None,
        ),
        Err(error) => (
            State::Unknown,
            format!("not to be found out: {}", error.chain()),
            "secrets may not open",
            error.hint,
        ),
    };
    let (name, consequence) = ("secret_key".to_owned(), consequence.to_owned());
    Fact { name, state, found, consequence, remedy }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::{Error, ErrorKind};

    #[test]
    fn a_key_in_a_file_is_said_with_what_moves_it() {
        let file = fact_of(Ok(Some(KeyPlace::File)));
        assert_eq!(file.state, State::Missing);
        assert!(file.remedy.unwrap().contains("--move-to keyring"));
        for place in [Some(KeyPlace::Keyring), None] {
            let fact = fact_of(Ok(place));
            assert_eq!((fact.state, fact.remedy), (State::Ok, None), "{}", fact.found);
        }
        let error = Error::new(ErrorKind::Conflict, "it is no key").hint("Put it back.");
        let unknown = fact_of(Err(error));
        assert_eq!(unknown.state, State::Unknown);
        assert!(unknown.found.contains("it is no key") && unknown.remedy.is_some());
    }
}
