//! A masker on any bytes, cut anywhere: it says what it says of the whole, where no line is broken what a look
//! at every place says, and holds little back.
#![no_main]

use cofferdam_core::secret::{MASK, Mask, Masker};
use libfuzzer_sys::fuzz_target;

fn naive(texts: &[Vec<u8>], bytes: &[u8]) -> Vec<u8> {
    let mut covered = vec![false; bytes.len()];
    for text in texts.iter().filter(|text| !text.is_empty()) {
        for at in 0..bytes.len() {
            if bytes[at..].starts_with(text) {
                covered[at..at + text.len()].fill(true);
            }
        }
    }
    let mut out = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        match covered[at] {
            false => out.push(*byte),
            true if at == 0 || !covered[at - 1] => out.extend_from_slice(MASK),
            true => {}
        }
    }
    out
}

fuzz_target!(|input: (Vec<Vec<u8>>, Vec<Vec<u8>>)| {
    let (mut texts, pieces) = input;
    texts.truncate(16);
    texts.iter_mut().for_each(|text| text.truncate(512));
    let longest = texts.iter().map(Vec::len).max().unwrap_or_default();
    // Between any two bytes of a text a line may be broken, by two bytes.
    let most = longest * 3;
    let mask = Mask::of_texts(texts.clone());
    let mut masker = Masker::new(mask.clone());
    let mut out = Vec::new();
    for piece in &pieces {
        masker.push(piece, &mut out);
        assert!(masker.held() <= most);
    }
    masker.finish(&mut out);
    let whole = pieces.concat();
    assert_eq!(out, mask.cover(&whole));
    if !whole.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        assert_eq!(out, naive(&texts, &whole));
    }
});
