//! Why a request came to nothing, and whether it is worth another one.

use cofferdam_core::{Error, ErrorKind};
use std::error::Error as _;
use std::io;

/// Why a request came to nothing.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It may work the next time.
    Passing(Error),
    /// It will not.
    Lasting(Error),
}

impl Failure {
    pub(crate) fn error(self) -> Error {
        match self {
            Self::Passing(error) | Self::Lasting(error) => error,
        }
    }
}

/// What went wrong on the way to a host. Neither the address nor any word of the other side is shown:
/// both may hold secrets.
pub(crate) fn of_way(host: &str, error: &reqwest::Error) -> Failure {
    if error.is_timeout() {
        let what = format!("{host} did not answer in time");
        return Failure::Passing(Error::new(ErrorKind::TimedOut, what).hint(AGAIN));
    }
    if is_of_name(error) {
        let what = format!("the name of {host} was not resolved");
        let hint = "Check the name of the registry, the network, and HTTPS_PROXY if you need one.";
        return Failure::Passing(Error::new(ErrorKind::Unavailable, what).hint(hint));
    }
    if let Some(error) = certificate(error) {
        let what = format!("the certificate of {host} is not trusted: {error}");
        let hint = about_certificate(&error);
        return Failure::Lasting(Error::new(ErrorKind::Denied, what).hint(hint));
    }
    let (what, hint) = match input_output(error).map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => (
            format!("{host} refused the connection"),
            "Check that the registry runs, its port, and HTTPS_PROXY if you need one.",
        ),
        _ if error.is_connect() => (
            format!("no connection to {host} could be made"),
            "Check the network, and HTTPS_PROXY if you need one; a registry that speaks plain HTTP \
             needs --insecure-registry.",
        ),
        _ => (format!("the answer of {host} broke off"), AGAIN),
    };
    Failure::Passing(Error::new(ErrorKind::Unavailable, what).hint(hint))
}

const AGAIN: &str = "Pull again; what has come is kept, and the download goes on where it stopped.";

/// Whether a name was not resolved. The system's own resolver is told by these words alone.
fn is_of_name(error: &reqwest::Error) -> bool {
    let is_it = |cause: &&(dyn std::error::Error + 'static)| cause.to_string() == "dns error";
    error.is_dns() || causes(error).iter().any(is_it)
}

fn causes(error: &reqwest::Error) -> Vec<&(dyn std::error::Error + 'static)> {
    let mut all = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        all.push(cause);
        next = cause.source();
    }
    all
}

fn input_output(error: &reqwest::Error) -> Option<&io::Error> {
    causes(error).into_iter().filter_map(|cause| cause.downcast_ref::<io::Error>()).next_back()
}

/// What the TLS library has against a certificate, however deep it lies.
fn certificate(error: &reqwest::Error) -> Option<String> {
    let text = causes(error).into_iter().find_map(against_certificate)?;
    // The name of what is wrong, and no more: what a certificate holds is the other side's.
    let names = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '(').next();
    names?.rsplit('(').next().map(str::to_owned)
}

/// What helps against this.
fn about_certificate(error: &str) -> &'static str {
    match error {
        name if name.starts_with("NotValidForName") => {
            "Name the registry as its certificate does, or have it get one for this name."
        }
        time if time.starts_with("Expired") || time.starts_with("NotValidYet") => {
            "Check this machine's clock; if it is right, the registry needs another certificate."
        }
        "Revoked" => "Ask whoever runs the registry why its certificate was revoked.",
        _ => "Install the registry's authority on this system, or name it in SSL_CERT_FILE.",
    }
}

fn against_certificate(cause: &(dyn std::error::Error + 'static)) -> Option<String> {
    if let Some(inner) = cause.downcast_ref::<io::Error>() {
        // An error of input and output holds others that are none of its sources.
        return against_certificate(inner.get_ref()?);
    }
    let rustls::Error::InvalidCertificate(why) = cause.downcast_ref::<rustls::Error>()? else {
        return None;
    };
    Some(format!("{why:?}"))
}

/// What a status that is no success means.
pub(crate) fn of_status(host: &str, what: &str, status: reqwest::StatusCode) -> Failure {
    let code = status.as_u16();
    match code {
        429 => Failure::Passing(
            Error::new(ErrorKind::Unavailable, format!("{host} limits how often it is asked"))
                .hint("Wait, or log in: most registries allow more then."),
        ),
        500..=599 => Failure::Passing(
            Error::new(ErrorKind::Unavailable, format!("{host} failed with status {code}"))
                .hint("Try again later."),
        ),
        _ => Failure::Lasting(
            Error::new(ErrorKind::Protocol, format!("{host} answered {code} for {what}"))
                .hint("Check the name of the registry, and whether something else answers there."),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_helps_against_a_certificate_fits_what_is_wrong_with_it() {
        for (error, word) in [
            ("NotValidForNameContext", "Name the registry"),
            ("NotValidForName", "Name the registry"),
            ("ExpiredContext", "clock"),
            ("NotValidYet", "clock"),
            ("UnknownIssuer", "SSL_CERT_FILE"),
        ] {
            assert!(about_certificate(error).contains(word), "{error}");
        }
    }
}
