//! Values that nobody may see: what they are called, who may have them, and how they are kept out of
//! what is written.

mod forms;
mod given;
mod grant;
mod granted;
mod mask;
mod name;
mod value;

pub use given::{
    GivenSecret, MAX_GIVEN, MAX_GIVEN_BYTES, SECRETS_DIRECTORY, SecretPlace, SecretWish,
};
pub use grant::{BasicOrBearer, GrantPlace, SecretGrant};
pub use granted::{
    Cover, GateGrant, Granted, MAX_GRANTS, MAX_VAULT_BYTES, SecretSource, Trusted, Vault,
};
pub use mask::{MASK, Mask, Masker};
pub use name::SecretName;
pub use value::{MAX_SECRET_BYTES, MIN_SECRET_BYTES, SecretValue};

#[cfg(test)]
mod mask_tests;
