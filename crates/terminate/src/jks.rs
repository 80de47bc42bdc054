//! A store of trusted certificates as Java reads it, whatever its version.

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};

/// Begins a store.
const MAGIC: u32 = 0xfeed_feed;
const VERSION: u32 = 2;
/// An entry that is a certificate, and no key.
const TRUSTED: u32 = 2;
/// What the sum at the end covers beside the password and the store.
const SALT: &[u8] = b"Mighty Aphrodite";

/// A store of these certificates. Its password protects nothing, for there is nothing secret in it; Java
/// compares a sum that it is part of.
pub(crate) fn store<'c>(
    certificates: impl ExactSizeIterator<Item = &'c [u8]>,
    password: &str,
) -> Vec<u8> {
    let mut out = Vec::new();
    let count = u32::try_from(certificates.len()).unwrap_or(u32::MAX);
    for number in [MAGIC, VERSION, count] {
        out.extend(number.to_be_bytes());
    }
    for (number, certificate) in certificates.enumerate() {
        out.extend(TRUSTED.to_be_bytes());
        text(&format!("c{number}"), &mut out);
        // When it was made: nobody asks.
        out.extend(0_u64.to_be_bytes());
        text("X.509", &mut out);
        out.extend(u32::try_from(certificate.len()).unwrap_or(u32::MAX).to_be_bytes());
        out.extend_from_slice(certificate);
    }
    let mut sum = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    for unit in password.encode_utf16() {
        sum.update(&unit.to_be_bytes());
    }
    sum.update(SALT);
    sum.update(&out);
    out.extend_from_slice(sum.finish().as_ref());
    out
}

fn text(text: &str, out: &mut Vec<u8>) {
    out.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}
