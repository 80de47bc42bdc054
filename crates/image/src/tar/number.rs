//! Numbers of a tar header.

use super::malformed;
use std::io;

/// Digits of eight, or bytes where the first bit is set.
pub(super) fn number(field: &[u8]) -> io::Result<u64> {
    if let [first, rest @ ..] = field
        && first & 0x80 != 0
    {
        // 0xff leads negative numbers, which nothing here can have.
        if first & 0x7f != 0 {
            return Err(malformed("a number of a header is out of range"));
        }
        return rest.iter().try_fold(0_u64, |value, byte| {
            let shifted = value.checked_mul(256);
            shifted.map(|value| value | u64::from(*byte)).ok_or_else(too_large)
        });
    }
    let text = field.split(|byte| *byte == 0).next().unwrap_or_default().trim_ascii();
    text.iter().try_fold(0_u64, |value, byte| match byte {
        b'0'..=b'7' => {
            let shifted = value.checked_mul(8);
            shifted.map(|value| value | u64::from(byte - b'0')).ok_or_else(too_large)
        }
        _ => Err(malformed("a number of a header has other digits than 0 to 7")),
    })
}

fn too_large() -> io::Error {
    malformed("a number of a header is out of range")
}

/// A time, which may be before 1970 where it is in bytes.
pub(super) fn mtime(field: &[u8]) -> io::Result<(i64, u32)> {
    match field {
        [0xff, ..] => Ok((0, 0)),
        field => Ok((i64::try_from(number(field)?).map_err(|_| too_large())?, 0)),
    }
}

/// Digits of ten.
pub(super) fn decimal(text: &[u8]) -> io::Result<u64> {
    let text = std::str::from_utf8(text).ok();
    text.and_then(|text| text.parse().ok())
        .ok_or_else(|| malformed("an extended header has a number that is none"))
}

/// Seconds with a fraction. Times before 1970 count as 1970.
pub(super) fn time(text: &[u8]) -> io::Result<(i64, u32)> {
    if text.starts_with(b"-") {
        return Ok((0, 0));
    }
    let mut parts = text.splitn(2, |byte| *byte == b'.');
    let seconds = decimal(parts.next().unwrap_or_default())?;
    let mut fraction = 0_u32;
    let digits = parts.next().unwrap_or_default().iter().copied().chain(std::iter::repeat(b'0'));
    for digit in digits.take(9) {
        if !digit.is_ascii_digit() {
            return Err(malformed("an extended header has a time that is none"));
        }
        fraction = fraction * 10 + u32::from(digit - b'0');
    }
    Ok((i64::try_from(seconds).map_err(|_| too_large())?, fraction))
}
