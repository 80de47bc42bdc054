//! Sizes, durations and shares of a processor, as people write them.

use crate::{Error, ErrorKind, Result};
use std::time::Duration;

/// Bytes from `512`, `64K`, `512M`, `2G` or `1T`. The letters are powers of 1024; 0 is refused.
pub fn parse_bytes(text: &str) -> Result<u64> {
    let bad = || {
        Error::new(ErrorKind::Usage, format!("{text:?} is not a size"))
            .hint("Write a number above 0 and, if you like, one of K, M, G, T (powers of 1024), as in 512M.")
    };
    let (digits, power) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (text.get(..text.len() - 1), 1),
        Some(b'M' | b'm') => (text.get(..text.len() - 1), 2),
        Some(b'G' | b'g') => (text.get(..text.len() - 1), 3),
        Some(b'T' | b't') => (text.get(..text.len() - 1), 4),
        _ => (Some(text), 0),
    };
    let digits = digits.ok_or_else(bad)?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad());
    }
    let number: u64 = digits.parse().map_err(|_| bad())?;
    number.checked_mul(1024_u64.pow(power)).filter(|bytes| *bytes > 0).ok_or_else(bad)
}

/// A duration from `250ms`, `30s`, `5m`, `2h` or `1d`. A unit is required; 0 is refused.
pub fn parse_duration(text: &str) -> Result<Duration> {
    let bad = || {
        Error::new(ErrorKind::Usage, format!("{text:?} is not a duration"))
            .hint("Write a number above 0 with its unit: ms, s, m, h or d, as in 5m.")
    };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits).ok_or_else(bad)?;
    let number: u64 = number.parse().map_err(|_| bad())?;
    let factor_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(bad()),
    };
    let ms = number.checked_mul(factor_ms).filter(|ms| *ms > 0).ok_or_else(bad)?;
    Ok(Duration::from_millis(ms))
}

/// Thousandths of a processor from `1.5`, `2` or `0.25`. At least 0.01.
pub fn parse_cpu(text: &str) -> Result<u32> {
    let bad = || {
        Error::new(ErrorKind::Usage, format!("{text:?} is not a number of processors"))
            .hint("Write a decimal number of at least 0.01, as in 1.5.")
    };
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > 3 {
        return Err(bad());
    }
    let whole: u32 = whole.parse().map_err(|_| bad())?;
    let part: u32 = format!("{part:0<3}").parse().map_err(|_| bad())?;
    let millis = whole.checked_mul(1000).and_then(|w| w.checked_add(part)).ok_or_else(bad)?;
    if millis < 10 { Err(bad()) } else { Ok(millis) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!(parse_bytes("512").unwrap(), 512);
        assert_eq!(parse_bytes("64K").unwrap(), 65_536);
        assert_eq!(parse_bytes("512M").unwrap(), 536_870_912);
        assert_eq!(parse_bytes("2g").unwrap(), 2_147_483_648);
        for bad in [
            "",
            "0",
            "K",
            "-1",
            "1.5G",
            "1 G",
            "5MB",
            "99999999999999999999",
            "18446744073709551615T",
            "é",
        ] {
            assert!(parse_bytes(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(parse_duration("250ms").unwrap(), Duration::from_millis(250));
        assert_eq!(parse_duration("5m").unwrap(), Duration::from_secs(300));
        for bad in ["", "5", "0s", "m", "-1s", "5 m", "5min", "99999999999999999999d", "5é"] {
            assert!(parse_duration(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn processors_are_decimal() {
        assert_eq!(parse_cpu("1.5").unwrap(), 1500);
        assert_eq!(parse_cpu("0.01").unwrap(), 10);
        assert_eq!(parse_cpu("2").unwrap(), 2000);
        for bad in ["", "0", ".5", "1e3", "-1", "1.2345", "0.001", "9999999"] {
            assert!(parse_cpu(bad).is_err(), "{bad:?}");
        }
    }
}
