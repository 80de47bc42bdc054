//! Names by which a browser or another caller knows a server.

use cofferdam_core::{Error, ErrorKind, Result};
use std::net::Ipv6Addr;

/// The name of a host without a port, as a request names it.
pub(crate) fn parse_host_name(text: &str) -> Result<String> {
    if is_name(text) {
        return Ok(text.to_owned());
    }
    Err(Error::new(ErrorKind::Usage, format!("{text:?} is no name of a host"))
        .hint("Write the name alone, as in box.example, without scheme, port and path."))
}

/// The name below which ports have addresses, with or without a port.
///
/// A word stands before it, so that it is a name and no number.
pub(crate) fn parse_port_domain(text: &str) -> Result<String> {
    let (name, port) = text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port)));
    let is_label = |label: &str| !label.is_empty() && is_name(label);
    let is_number = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
    let is_below = name.split('.').all(is_label) && !name.rsplit('.').next().is_none_or(is_number);
    // Without a scheme there is no usual port.
    if is_below && port.is_none_or(|port| is_port("", port)) {
        return Ok(text.to_owned());
    }
    let what = format!("{text:?} is no name below which there could be others");
    Err(Error::new(ErrorKind::Usage, what).hint(
        "Write a name, as in boxes.example or boxes.example:8443: no number, no dot at the end, and a port \
         from 1 to 65535.",
    ))
}

/// An origin as browsers write it, which is compared byte for byte: what they never write would match none.
pub(crate) fn parse_origin(text: &str) -> Result<String> {
    let is_written = |(scheme, place): (&str, &str)| {
        let (host, port) = split_port(place);
        is_scheme(scheme) && is_host(host) && port.is_none_or(|port| is_port(scheme, port))
    };
    // Pages of a file or of a frame that may nothing have this one.
    if text == "null" || text.split_once("://").is_some_and(is_written) {
        return Ok(text.to_owned());
    }
    Err(Error::new(ErrorKind::Usage, format!("{text:?} is no origin as a browser writes it")).hint(
        "Write it as in https://board.example or http://localhost:3000: lower case, no path, no / at the \
         end, and the port only where it is not the usual one.",
    ))
}

fn is_name(host: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    !host.is_empty() && host.bytes().all(is_plain)
}

fn is_host(host: &str) -> bool {
    let lower = !host.bytes().any(|byte| byte.is_ascii_uppercase());
    let number = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_short =
        |number: &str| number.parse::<Ipv6Addr>().is_ok_and(|parsed| parsed.to_string() == number);
    lower && number.map_or_else(|| is_name(host), is_short)
}

fn is_scheme(scheme: &str) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte);
    scheme.starts_with(|first: char| first.is_ascii_lowercase()) && scheme.bytes().all(is_plain)
}

/// The colons of a number stand in brackets.
fn split_port(place: &str) -> (&str, Option<&str>) {
    match place.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        Some(_) | None => (place, None),
    }
}

fn is_port(scheme: &str, port: &str) -> bool {
    let usual = match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    };
    let number = port.parse::<u16>().ok().filter(|number| number.to_string() == port);
    number.is_some_and(|number| number > 0 && Some(number) != usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_as_a_browser_writes_it() {
        for good in [
            "https://board.example",
            "http://localhost:3000",
            "http://127.0.0.1:8080",
            "http://[::1]:8080",
            "https://[2001:db8::1]",
            "http://a.example:443",
            "chrome-extension://abcdefgh",
            "null",
        ] {
            assert_eq!(parse_origin(good).unwrap(), good);
        }
        for bad in [
            "",
            "bogus",
            "board.example",
            "*",
            "https://",
            "https://board.example/",
            "https://board.example/path",
            "https://Board.example",
            "HTTPS://board.example",
            "https://board.example:443",
            "http://board.example:80",
            "http://board.example:0",
            "http://board.example:080",
            "http://board.example:",
            "http://*.example",
            "http://a b",
            "http://user@a",
            "http://[x]",
            "http://[0:0::1]",
            "https://a https://b",
        ] {
            let error = parse_origin(bad).unwrap_err();
            assert!(error.hint.unwrap().contains("https://board.example"), "{bad}");
        }
    }

    #[test]
    fn ports_have_addresses_below_a_name_alone() {
        for good in ["boxes.example", "boxes.example:8443", "localhost", "localhost:7070", "B.x1"] {
            assert_eq!(parse_port_domain(good).unwrap(), good);
        }
        for bad in [
            "",
            "host:99999",
            "host:0",
            "host:",
            "host:+80",
            "10.0.0.1",
            "10.0.0.1:80",
            "[::1]",
            "::1",
            "boxes.example.",
            ".boxes.example",
            "a..b",
            "https://a",
        ] {
            let error = parse_port_domain(bad).unwrap_err();
            assert!(error.hint.unwrap().contains("boxes.example"), "{bad}");
        }
    }

    #[test]
    fn a_name_of_a_host_is_no_more_than_that() {
        for good in ["box.example", "Box", "my_box", "a-b.c"] {
            assert_eq!(parse_host_name(good).unwrap(), good);
        }
        for bad in ["", "a b", "a:80", "http://a", "a/", "*.example", "a,b", "[::1]"] {
            let error = parse_host_name(bad).unwrap_err();
            assert!(error.hint.unwrap().contains("box.example"), "{bad}");
        }
    }
}
