//! How programs inside come to trust the session's authority: files and variables.

use crate::jks;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The authority's certificate alone, for programs that add it to what they trust.
pub const OWN_CERTIFICATE: &str = "/run/cofferdam/ca.pem";
/// The system's authorities and this one, for programs that trust what one file has.
pub const WHOLE_BUNDLE: &str = "/run/cofferdam/ca-bundle.pem";
/// The same for Java.
pub const JAVA_STORE: &str = "/run/cofferdam/ca.jks";
/// Where systems keep theirs. Those that are there are shown with the authority added.
pub const SYSTEM_BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// What the password of a Java store is that nobody chose one for.
const JAVA_PASSWORD: &str = "changeit";

/// Variables that name a file which is all that a program trusts.
const NAME_THE_BUNDLE: [&str; 7] = [
    // OpenSSL, and with it Ruby, Perl and curl; Go; rustls.
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "CARGO_HTTP_CAINFO",
    "AWS_CA_BUNDLE",
];
/// Variables that name a file which a program trusts beside its own.
const NAME_THE_CERTIFICATE: [&str; 2] = ["NODE_EXTRA_CA_CERTS", "DENO_CERT"];

/// What a view has to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trust {
    /// Files, by where they are, read-only. No key is in any.
    pub files: Vec<(String, Vec<u8>)>,
    /// Variables of every command.
    pub variables: Vec<(String, String)>,
}

/// What has to be in a view for programs to trust an authority.
///
/// `pem` is its certificate, `system` the bundle of the system that the view shows, and `bundles` those of
/// [`SYSTEM_BUNDLES`] that are there.
pub fn trust(pem: &str, system: &str, bundles: &[&str]) -> Trust {
    let mut whole = system.to_owned();
    if !whole.is_empty() && !whole.ends_with('\n') {
        whole.push('\n');
    }
    whole.push_str(pem);
    let certificates = certificates(&whole);
    let store = jks::store(certificates.iter().map(Vec::as_slice), JAVA_PASSWORD);
    let mut files = vec![
        (OWN_CERTIFICATE.to_owned(), pem.as_bytes().to_vec()),
        (WHOLE_BUNDLE.to_owned(), whole.clone().into_bytes()),
        (JAVA_STORE.to_owned(), store),
    ];
    let known = bundles.iter().filter(|path| SYSTEM_BUNDLES.contains(path));
    files.extend(known.map(|path| ((*path).to_owned(), whole.clone().into_bytes())));
    let mut variables: Vec<(String, String)> = Vec::new();
    let mut set = |name: &str, value: &str| variables.push((name.to_owned(), value.to_owned()));
    NAME_THE_BUNDLE.iter().for_each(|name| set(name, WHOLE_BUNDLE));
    NAME_THE_CERTIFICATE.iter().for_each(|name| set(name, OWN_CERTIFICATE));
    let java = format!(
        "-Djavax.net.ssl.trustStore={JAVA_STORE} -Djavax.net.ssl.trustStorePassword={JAVA_PASSWORD}"
    );
    set("JAVA_TOOL_OPTIONS", &java);
    Trust { files, variables }
}

/// The certificates of a text, as bytes. What is none is left out.
fn certificates(text: &str) -> Vec<Vec<u8>> {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let blocks = text.split(BEGIN).skip(1).filter_map(|rest| rest.split_once(END));
    let decoded = blocks.filter_map(|(block, _)| {
        let digits: String = block.split_whitespace().collect();
        STANDARD.decode(digits).ok()
    });
    decoded.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Authority;

    #[test]
    fn what_is_there_is_covered_and_nothing_else() {
        let (one, two) = (Authority::new("a").unwrap(), Authority::new("b").unwrap());
        let known = SYSTEM_BUNDLES[0];
        let trust = trust(&one.pem(), &two.pem(), &[known, "/etc/passwd"]);
        let paths: Vec<&str> = trust.files.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, [OWN_CERTIFICATE, WHOLE_BUNDLE, JAVA_STORE, known]);
        assert_eq!(trust.files[1].1, (two.pem() + &one.pem()).into_bytes());
        for (name, value) in &trust.variables {
            assert!(paths.iter().any(|path| value.contains(path)), "{name}={value}");
        }
    }

    #[test]
    fn certificates_are_read_from_text() {
        let one = Authority::new("a").unwrap();
        let text = format!("# a note\n{}\n-----BEGIN CERTIFICATE-----\n!\n", one.pem());
        assert_eq!(certificates(&text), [one.certificate().to_vec()]);
    }
}
