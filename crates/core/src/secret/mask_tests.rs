use super::*;
use proptest::prelude::*;

fn stream(mask: &Mask, pieces: &[&[u8]]) -> Vec<u8> {
    let (mut masker, mut out) = (Masker::new(mask.clone()), Vec::new());
    for piece in pieces {
        masker.push(piece, &mut out);
    }
    masker.finish(&mut out);
    out
}

fn of(values: &[&str]) -> Mask {
    let values: Vec<SecretValue> =
        values.iter().map(|value| SecretValue::new(value.as_bytes().to_vec()).unwrap()).collect();
    Mask::new(&values).unwrap()
}

/// Every place by itself.
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

#[test]
fn a_value_is_covered_wherever_the_pieces_are_cut() {
    let mask = of(&["hunter22"]);
    let text = b"a hunter22 b aHVudGVyMjI= c hunter2x";
    let expected = b"a *** b ***= c hunter2x".to_vec();
    for cut in 0..text.len() {
        let (one, two) = text.split_at(cut);
        assert_eq!(stream(&mask, &[one, two]), expected, "{cut}");
    }
    let bytes: Vec<&[u8]> = text.chunks(1).collect();
    assert_eq!(stream(&mask, &bytes), expected);
}

#[test]
fn values_that_overlap_are_covered_together() {
    assert_eq!(of(&["abcdef", "defghi"]).cover(b"xabcdefghix"), b"x***x");
    assert_eq!(of(&["abcd", "abcdefgh"]).cover(b"abcdefgh abcdefgX"), b"*** ***efgX");
}

#[test]
fn only_the_beginning_of_a_value_is_held_back() {
    let mut masker = Masker::new(of(&["hunter22"]));
    let mut out = Vec::new();
    masker.push(b"$ hunt", &mut out);
    assert_eq!((out.as_slice(), masker.held()), (&b"$ "[..], 4));
    masker.push(b"ing", &mut out);
    assert_eq!((out.as_slice(), masker.held()), (&b"$ hunting"[..], 0));
    // The end of a line does not wait for the next one because a value might be broken there.
    masker.push(b" hun\n", &mut out);
    assert_eq!((out.as_slice(), masker.held()), (&b"$ hunting hun\n"[..], 0));
}

#[test]
fn a_value_is_covered_wherever_its_lines_are_broken() {
    let mask = of(&["hunter22-and-more"]);
    for text in ["hunt\ner22-and-more", "hunter22-\r\nand-\nmore", "hunte\nr\n22-a\nn\nd-more"] {
        assert_eq!(mask.cover(format!("a {text} b").as_bytes()), b"a *** b", "{text:?}");
    }
    let apart = b"hunter22\n\n\n-and-more hunter22 -and-more";
    assert_eq!(mask.cover(apart), apart, "control: two breaks and a space are none of it");
}

#[test]
fn an_encoding_with_others_before_it_is_covered_wherever_an_encoder_breaks_it() {
    let value: String =
        (0..700_u32).map(|n| char::from(b'!' + u8::try_from(n * n % 83).unwrap())).collect();
    let mask = of(&[&value]);
    for before in 0..90 {
        let text = base64_of(format!("{}{value}", "x".repeat(before)).as_bytes());
        for width in [64, 76] {
            let lines: Vec<&str> = text
                .as_bytes()
                .chunks(width)
                .map(|line| std::str::from_utf8(line).unwrap())
                .collect();
            let out = String::from_utf8(mask.cover(lines.join("\n").as_bytes())).unwrap();
            let shown = out.replace("***", "").replace('\n', "");
            // A few letters before and behind are of others too.
            assert!(shown.len() <= before * 4 / 3 + 12, "{before} {width}: {out}");
        }
    }
}

#[test]
fn a_long_value_is_covered_and_little_is_held_back() {
    let value: String =
        (0..9000_u32).map(|n| char::from(b'!' + u8::try_from(n * n % 83).unwrap())).collect();
    let mask = of(&[&value]);
    let mut masker = Masker::new(mask.clone());
    let mut out = Vec::new();
    for piece in value.as_bytes().chunks(7) {
        masker.push(piece, &mut out);
        assert!(masker.held() < super::forms::MAX_PATTERN_BYTES);
    }
    masker.finish(&mut out);
    assert_eq!(out, MASK);
    assert_eq!(mask.cover(format!("<{value}>").as_bytes()), b"<***>");
}

#[test]
fn the_number_and_length_of_values_is_bounded() {
    let value = |n: usize| SecretValue::new(format!("value-{n}").into_bytes()).unwrap();
    let many: Vec<SecretValue> = (0..=super::given::MAX_MASKED).map(value).collect();
    assert!(Mask::new(&many[1..]).is_ok());
    assert_eq!(Mask::new(&many).unwrap_err().kind, crate::ErrorKind::TooLarge);
    let long = SecretValue::new(vec![b'x'; MAX_SECRET_BYTES]).unwrap();
    let most = MAX_GIVEN_BYTES / MAX_SECRET_BYTES;
    assert!(Mask::new(std::iter::repeat_n(&long, most)).is_ok());
    let over = Mask::new(std::iter::repeat_n(&long, most + 1));
    assert_eq!(over.unwrap_err().kind, crate::ErrorKind::TooLarge);
}

#[test]
fn values_that_begin_alike_do_not_slow_it_down() {
    let lines: Vec<String> = (0..4000).map(|n| format!("AAAAAAAA{n:04}")).collect();
    let value = lines.join("\n");
    let mask = of(&[&value]);
    let text = vec![b'A'; 1 << 20];
    assert_eq!(mask.cover(&text), text);
}

fn texts() -> impl Strategy<Value = Vec<Vec<u8>>> {
    proptest::collection::vec(proptest::collection::vec(b'a'..b'd', 1..7), 1..6)
}

proptest! {
    #[test]
    fn a_stream_is_covered_as_by_a_look_at_every_place(
        texts in texts(),
        bytes in proptest::collection::vec(b'a'..b'e', 0..200),
        cuts in proptest::collection::vec(1_usize..9, 0..60),
    ) {
        let mask = Mask::of_texts(texts.clone());
        let mut pieces = Vec::new();
        let mut rest = bytes.as_slice();
        for cut in cuts {
            let (piece, others) = rest.split_at(cut.min(rest.len()));
            pieces.push(piece);
            rest = others;
        }
        pieces.push(rest);
        prop_assert_eq!(stream(&mask, &pieces), naive(&texts, &bytes));
    }

    #[test]
    fn no_form_of_a_value_comes_through(
        value in "[!-~]{12,80}",
        before in "[a-z]{0,5}",
        cut in 1_usize..40,
    ) {
        use base64_of as encode;
        let mask = of(&[&value]);
        let texts = [
            format!("{before}{value}"),
            format!("{before} {}", encode(format!("{before}:{value}").as_bytes())),
        ];
        for text in texts {
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(cut).collect();
            let out = String::from_utf8(stream(&mask, &pieces)).unwrap();
            prop_assert!(!out.contains(&value), "{out}");
            let middle = encode(format!("{before}:{value}").as_bytes());
            let middle = &middle[(before.len() + 1).div_ceil(3) * 4..(before.len() + 1 + value.len()) / 3 * 4];
            prop_assert!(middle.len() >= 8 && !out.contains(middle), "{out} has {middle}");
        }
    }
}

/// The plain way, as an oracle.
fn base64_of(bytes: &[u8]) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits: Vec<u8> = bytes.iter().flat_map(|b| (0..8).rev().map(move |n| b >> n & 1)).collect();
    let digits = bits.chunks(6).map(|six| six.iter().fold(0, |n, b| n << 1 | b) << (6 - six.len()));
    let mut text: String = digits.map(|n| char::from(ALPHABET[usize::from(n)])).collect();
    while !text.len().is_multiple_of(4) {
        text.push('=');
    }
    text
}
