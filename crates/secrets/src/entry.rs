//! One secret as a file: what it is, in the clear, and its value, encrypted with that.

use crate::seal::{Key, open, seal};
use cofferdam_core::Result;
use cofferdam_core::secret::{MAX_SECRET_BYTES, SecretName, SecretValue};
use serde::{Deserialize, Serialize};

/// Begins each file.
const LEAD: &[u8; 8] = b"CFDSECR\x01";
/// The longest head.
const MAX_HEAD_BYTES: usize = 4096;
/// More than the longest file has.
pub(crate) const MAX_FILE_BYTES: usize = MAX_SECRET_BYTES + MAX_HEAD_BYTES + 256;

/// What a secret is. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    pub(crate) owner: String,
    pub(crate) name: SecretName,
    pub(crate) created_ms: u64,
    pub(crate) changed_ms: u64,
}

/// The file of a secret.
pub(crate) fn encode(key: &Key, head: &Head, value: &SecretValue) -> Result<Vec<u8>> {
    let head = serde_json::to_vec(head).unwrap_or_default();
    let length = u32::try_from(head.len()).unwrap_or(u32::MAX).to_le_bytes();
    let mut file = [&LEAD[..], &length, &head].concat();
    let sealed = seal(key, &file, value.expose())?;
    file.extend_from_slice(&sealed);
    Ok(file)
}

/// More bytes than stand before the value in any file.
pub(crate) const MAX_LEAD_BYTES: usize = LEAD.len() + 4 + MAX_HEAD_BYTES;

/// What such a file says that it is, by its beginning. Nobody has looked whether that is true. `None` where it
/// begins otherwise.
pub(crate) fn head_told(beginning: &[u8]) -> Option<Head> {
    let (lead, rest) = beginning.split_first_chunk::<8>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let head = rest.get(..length).filter(|_| lead == LEAD)?;
    serde_json::from_slice(head).ok()
}

/// What is in such a file. `None` where anything of it was changed.
pub(crate) fn decode(key: &Key, file: &[u8]) -> Option<(Head, SecretValue)> {
    let (lead, rest) = file.split_first_chunk::<8>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    if lead != LEAD || length > MAX_HEAD_BYTES {
        return None;
    }
    let (head, sealed) = rest.split_at_checked(length)?;
    let about = file.get(..lead.len() + 4 + length)?;
    // ORDER: nothing of it is read before it is known to be ours.
    let value = open(key, about, sealed)?;
    Some((serde_json::from_slice(head).ok()?, SecretValue::new(value).ok()?))
}
