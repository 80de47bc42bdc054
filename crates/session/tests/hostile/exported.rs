//! What must hold for any bytes that are handed over as an exported snapshot. Shared with the fuzz
//! targets.

use cofferdam_core::hexadecimal;
use cofferdam_session::{MAX_EXPORTED_BYTES, MAX_EXPORTED_ENTRIES, check_export};
use sha2::{Digest, Sha256};

/// Any bytes are an exported snapshot, of what may come in, or refused; and one of which something is
/// missing, or which something follows, is none.
pub(crate) fn exported(bytes: &[u8]) {
    let Ok(manifest) = check_export(bytes) else { return };
    assert!(manifest.files <= MAX_EXPORTED_ENTRIES);
    assert!(manifest.content_bytes <= MAX_EXPORTED_BYTES);
    assert_eq!(check_export(bytes).ok(), Some(manifest), "the same each time");
    let (_, shorter) = bytes.split_last().unwrap_or((&0, bytes));
    assert!(check_export(shorter).is_err());
    assert!(check_export(&[bytes, b"x"].concat()[..]).is_err());
}

/// The same of bytes that are a list and contents, with sums that are right, so that what is behind
/// those is reached.
pub(crate) fn summed(count: u32, entries: &[u8], contents: &[u8], said: [u64; 3]) {
    exported(&put_together(count, entries, contents, said));
}

/// A file of these, whose manifest says how many contents there are, and how many bytes of files and of
/// contents.
pub(crate) fn put_together(
    count: u32,
    entries: &[u8],
    contents: &[u8],
    [files, bytes, held]: [u64; 3],
) -> Vec<u8> {
    let mut list = [b"cofferdam-tree\x01\n".as_slice(), &count.to_le_bytes(), entries].concat();
    let sum = Sha256::digest(&list);
    list.extend(sum);
    let manifest = format!(
        r#"{{"format":1,"cofferdam":"x","made_ms":1,"label":null,"workspace":{{"path":"","identity":
        null}},"files":{count},"bytes":{bytes},"contents":{files},"content_bytes":{held},
        "list_bytes":{},"list_sha256":"{}"}}"#,
        list.len(),
        hexadecimal(Sha256::digest(&list)),
    );
    let length = u32::try_from(manifest.len()).unwrap_or(0).to_le_bytes();
    let lead = b"cofferdam-snapshot\x01\n".as_slice();
    let mut all = [lead, &length, manifest.as_bytes(), &list, contents].concat();
    let sum = Sha256::digest(&all);
    all.extend(sum);
    all
}
