//! What must not be seen.

use std::fmt;

/// A text that no message, log or dump shows.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// For the one who is told it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// Who somebody is to a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// A name and a password.
    Password(String, Secret),
    /// What is changed for a token.
    Identity(Secret),
    /// A token itself.
    Token(Secret),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        let all = [
            Credentials::Password("u".to_owned(), Secret::new("canary")),
            Credentials::Identity(Secret::new("canary")),
            Credentials::Token(Secret::new("canary")),
        ];
        assert!(!format!("{all:?} {all:#?}").contains("canary"));
        assert_eq!(Secret::new("canary").reveal(), "canary");
    }
}
