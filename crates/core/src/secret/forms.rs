//! The texts that a value turns into on its way through programs.

use super::mask::MIN_BEFORE_BREAK;
use super::value::{MIN_SECRET_BYTES, SecretValue};
use zeroize::Zeroizing;

/// The longest text that is looked for in one piece. Longer ones are looked for in pieces of at least
/// half of that, so that a masker holds little back.
pub(super) const MAX_PATTERN_BYTES: usize = 512;
/// The shortest line of a value with several that is looked for by itself.
pub(super) const MIN_LINE_BYTES: usize = 8;

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const FOR_URLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A text to look for.
pub(super) type Pattern = Zeroizing<Vec<u8>>;

/// All texts to look for, some of them twice, none longer than [`MAX_PATTERN_BYTES`].
pub(super) fn of(value: &SecretValue) -> Vec<Pattern> {
    let (whole, line) = (value.expose(), value.expose_line());
    let mut found = Vec::new();
    let mut add = |text: Pattern| {
        let pieces = text.len().div_ceil(MAX_PATTERN_BYTES).max(1);
        // Even ones: a short rest would be found everywhere, or nowhere.
        for piece in text.chunks(text.len().div_ceil(pieces).max(1)) {
            if piece.len() >= MIN_SECRET_BYTES {
                found.push(Zeroizing::new(piece.to_vec()));
            }
        }
    };
    add(Zeroizing::new(line.to_vec()));
    if line.contains(&b'\n') {
        add(with_returns(line));
        for one in line.split(|byte| *byte == b'\n') {
            let one = one.strip_suffix(b"\r").unwrap_or(one);
            if one.len() >= MIN_LINE_BYTES {
                add(Zeroizing::new(one.to_vec()));
            }
        }
    }
    let mut texts = vec![line];
    if whole != line {
        texts.push(whole);
    }
    for text in texts {
        for alphabet in [STANDARD, FOR_URLS] {
            for core in (0..3).map(|before| base64_core(text, before, alphabet)) {
                // Where its line is broken sooner than is looked for, the rest is still found.
                for lost in 1..MIN_BEFORE_BREAK {
                    let end = core.len().min(MAX_PATTERN_BYTES);
                    let rest = core.get(lost..end).filter(|rest| rest.len() >= MIN_LINE_BYTES);
                    add(Zeroizing::new(rest.unwrap_or_default().to_vec()));
                }
                add(core);
            }
            add(base64(text, alphabet));
        }
        for style in ESCAPES {
            add(percent(text, style));
        }
        for digits in [UPPER, LOWER] {
            add(hexadecimal(b"%", text, digits));
            add(hexadecimal(b"", text, digits));
        }
        add(json(text));
    }
    found
}

/// As a terminal shows it.
fn with_returns(text: &[u8]) -> Pattern {
    let mut out = Zeroizing::new(Vec::with_capacity(text.len() * 2));
    for (at, byte) in text.iter().enumerate() {
        let has_return = at.checked_sub(1).and_then(|at| text.get(at)) == Some(&b'\r');
        if *byte == b'\n' && !has_return {
            out.push(b'\r');
        }
        out.push(*byte);
    }
    out
}

/// The characters of an encoding, without padding.
fn base64(text: &[u8], alphabet: &[u8; 64]) -> Pattern {
    let mut out = Zeroizing::new(Vec::with_capacity(text.len() * 4 / 3 + 4));
    for three in text.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for shift in [18, 12, 6, 0].into_iter().take(three.len() + 1) {
            let at = usize::try_from(bits >> shift & 63).unwrap_or_default();
            out.extend(alphabet.get(at));
        }
    }
    out
}

/// The characters that an encoding has for this text whatever stands before and behind it, where
/// `before` bytes of a group of three come before.
fn base64_core(text: &[u8], before: usize, alphabet: &[u8; 64]) -> Pattern {
    let mut shifted = Zeroizing::new(vec![0; before]);
    shifted.extend_from_slice(text);
    let encoded = base64(&shifted, alphabet);
    let first = (before * 8).div_ceil(6);
    let end = shifted.len() * 8 / 6;
    Zeroizing::new(encoded.get(first..end).unwrap_or_default().to_vec())
}

/// Two digits for every byte, after a mark.
fn hexadecimal(mark: &[u8], text: &[u8], digits: &[u8; 16]) -> Pattern {
    let mut out = Zeroizing::new(Vec::with_capacity(text.len() * 3));
    for byte in text {
        out.extend_from_slice(mark);
        out.extend(digits.get(usize::from(byte >> 4)));
        out.extend(digits.get(usize::from(byte & 15)));
    }
    out
}

/// How an encoder escapes by percent.
#[derive(Clone, Copy)]
struct Escape {
    /// What stays beside letters, digits and `-._~`.
    kept: &'static [u8],
    digits: &'static [u8; 16],
    plus_for_space: bool,
}

const UPPER: &[u8; 16] = b"0123456789ABCDEF";
const LOWER: &[u8; 16] = b"0123456789abcdef";
/// What a script's `encodeURIComponent` keeps.
const OF_SCRIPTS: &[u8] = b"!'()*";

const ESCAPES: [Escape; 6] = [
    Escape { kept: b"", digits: UPPER, plus_for_space: false },
    Escape { kept: b"", digits: LOWER, plus_for_space: false },
    Escape { kept: b"", digits: UPPER, plus_for_space: true },
    // Python keeps slashes unless somebody says otherwise.
    Escape { kept: b"/", digits: UPPER, plus_for_space: false },
    Escape { kept: OF_SCRIPTS, digits: UPPER, plus_for_space: false },
    Escape { kept: OF_SCRIPTS, digits: LOWER, plus_for_space: false },
];

fn percent(text: &[u8], style: Escape) -> Pattern {
    let mut out = Zeroizing::new(Vec::with_capacity(text.len() * 3));
    for byte in text {
        let is_kept = byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
        if is_kept || style.kept.contains(byte) {
            out.push(*byte);
        } else if *byte == b' ' && style.plus_for_space {
            out.push(b'+');
        } else {
            out.extend_from_slice(&hexadecimal(b"%", &[*byte], style.digits));
        }
    }
    out
}

/// As a string of JSON holds it, as far as all writers agree.
fn json(text: &[u8]) -> Pattern {
    let mut out = Zeroizing::new(Vec::with_capacity(text.len() * 2));
    for byte in text {
        match byte {
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            _ => out.push(*byte),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(value: &[u8], text: &str) -> bool {
        let forms = of(&SecretValue::new(value.to_vec()).unwrap());
        forms.iter().any(|form| form.as_slice() == text.as_bytes())
    }

    #[test]
    fn a_value_is_known_in_every_form() {
        let value = b"s3cr\xc3\xa9t /+&x\n";
        for form in [
            "s3cr\u{e9}t /+&x",
            "czNjcsOpdCAvKyZ4",
            "czNjcsOpdCAvKyZ4Cg",
            "s3cr%C3%A9t%20%2F%2B%26x",
            "s3cr%c3%a9t%20%2f%2b%26x",
            "s3cr%C3%A9t+%2F%2B%26x",
            "s3cr%C3%A9t%20/%2B%26x",
            "%73%33%63%72%C3%A9%74%20%2F%2B%26%78",
            "73336372c3a974202f2b2678",
        ] {
            assert!(has(value, form), "{form}");
        }
        // As names and passwords are sent: "u:token-1234", "us:token-1234" and "usr:token-1234".
        for (sent, form) in [
            ("dTp0b2tlbi0xMjM0", "0b2tlbi0xMjM0"),
            ("dXM6dG9rZW4tMTIzNA==", "dG9rZW4tMTIzN"),
            ("dXNyOnRva2VuLTEyMzQ=", "Rva2VuLTEyMz"),
        ] {
            assert!(sent.contains(form) && has(b"token-1234", form), "{form}");
        }
    }

    #[test]
    fn lines_of_a_value_count_if_they_are_long() {
        let value = b"-----BEGIN-----\r\nshort\nlonger-line-of-a-key\n";
        assert!(has(value, "-----BEGIN-----") && has(value, "longer-line-of-a-key"));
        assert!(!has(value, "short"));
        assert!(has(value, "-----BEGIN-----\r\nshort\r\nlonger-line-of-a-key"));
    }

    #[test]
    fn no_text_to_look_for_is_long_and_none_is_short() {
        let value: Vec<u8> =
            (0..5000_u32).map(|n| b'!' + u8::try_from(n * n % 89).unwrap()).collect();
        let forms = of(&SecretValue::new(value).unwrap());
        let lengths: Vec<usize> = forms.iter().map(|form| form.len()).collect();
        assert!(lengths.iter().all(|len| (MIN_SECRET_BYTES..=MAX_PATTERN_BYTES).contains(len)));
        assert!(lengths.iter().filter(|len| **len < MAX_PATTERN_BYTES / 2).count() < 60);
    }
}
