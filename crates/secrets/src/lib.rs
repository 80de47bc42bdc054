//! The secrets of this machine's users, encrypted at rest.
//!
//! A [`SecretStore`] is a directory that its owner alone can use. Each secret is a file of its own,
//! encrypted and authenticated with its name and owner by a random key. That key lies beside them, itself
//! encrypted by a key that is kept apart: in the keyring of the user's session where there is one, and else in
//! a file with mode 0600. Files are replaced whole or not at
//! all, so several processes may work on a store at once; whatever is damaged, foreign or open to others
//! is an error that names it.
//!
//! What is read is overwritten in memory when it is dropped, and is never printed. This room knows
//! neither sandboxes nor the network.

mod entry;
mod keyring;
mod keys;
mod place;
mod seal;
mod store;

pub use keys::KeyPlace;
pub use store::{Listed, MAX_SECRETS, SecretReport, SecretStore};

#[cfg(test)]
mod keyring_tests;
#[cfg(test)]
mod tests;
