//! An exported snapshot is hostile: whatever it is, it is understood as it stands or refused.

#[path = "hostile/exported.rs"]
mod exported;

use proptest::prelude::*;
use proptest::sample::select;

/// An entry of a list, of any type and with numbers that are in reach.
fn entry() -> impl Strategy<Value = Vec<u8>> {
    let name = select(vec![&b""[..], b"a", b"a/b", b"b", b"..", b"/a", b"a\0", b"a/"]);
    let node = select(vec![
        vec![1],
        [&[2][..], &1_u64.to_le_bytes(), &3_u64.to_le_bytes()].concat(),
        [&[3, 1, 0, 0, 0][..], b"/"].concat(),
        vec![4],
        vec![5],
        vec![6],
        vec![7, 1, 0, 0, 0],
        vec![8],
    ]);
    let mode = select(vec![0o644_u32, 0o755, 0o4755, 0o100_644]);
    (name, node, mode).prop_map(|(name, node, mode)| {
        let length = u32::try_from(name.len()).unwrap_or(0).to_le_bytes();
        [&length[..], name, &node, &mode.to_le_bytes(), &[0; 36]].concat()
    })
}

proptest! {
    #[test]
    fn any_bytes_are_an_exported_snapshot_or_refused(bytes in any::<Vec<u8>>()) {
        exported::exported(&bytes);
        exported::exported(&[b"cofferdam-snapshot\x01\n".as_slice(), &bytes].concat());
    }

    #[test]
    fn any_list_and_any_contents_are_understood_or_refused(
        entries in proptest::collection::vec(entry(), 0..6),
        contents in any::<Vec<u8>>(),
        files in 0..3_u64,
        held in 0..9_u64,
    ) {
        let count = u32::try_from(entries.len()).unwrap_or(0);
        exported::summed(count, &entries.concat(), &contents, [files, files * 3, held]);
        exported::summed(count, &contents, &entries.concat(), [files, held, held]);
    }
}

/// The control: what is put together so is reached.
#[test]
fn a_list_that_is_right_is_understood() {
    let top = [&[0; 4][..], &[1], &0o755_u32.to_le_bytes(), &[0; 36]].concat();
    let whole = exported::put_together(1, &top, b"", [0, 0, 0]);
    assert_eq!(cofferdam_session::check_export(&whole[..]).unwrap().files, 1);
    exported::exported(&whole);
}
