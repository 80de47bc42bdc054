//! A server behind something that speaks TLS.

use crate::place::{PYTHON, Place, SOON, Said, everyone, outcome, skipped, started};
use crate::remote::{Server, key};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType};
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const FRONT: &str = include_str!("tls_front.py");

/// What speaks TLS before a server. It is killed with the value.
struct Front {
    child: Child,
    url: String,
    /// The authority that its certificate is of.
    authority: PathBuf,
}

impl Front {
    fn start(place: &Place, server: &Server) -> Self {
        let (ours, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let mut authority = CertificateParams::new(Vec::<String>::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let of_authority = authority.self_signed(&ours).unwrap();
        let issuer = Issuer::new(authority, ours);
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let put = |name: &str, bytes: &[u8]| {
            let path = place.base.join(name);
            std::fs::write(&path, bytes).unwrap();
            place.give(&path);
            path
        };
        let chain = put("front.der", certificate.der());
        let secret = put("front-key.der", &key.serialize_der());
        let authority = put("authority.der", of_authority.der());
        let pem = place.base.join("authority.pem");
        let line = "import ssl,sys;open(sys.argv[2],'w').write(ssl.DER_cert_to_PEM_cert(open(sys.argv[1],'rb').read()))";
        let made = outcome(place.host(PYTHON).args(["-c", line]).arg(&authority).arg(&pem), SOON);
        assert!(made.status.success(), "{made:?}");
        let mut command = place.host(PYTHON);
        command.args(["-c", FRONT]).arg(chain).arg(secret);
        command.arg(server.url.trim_start_matches("http://")).stdout(Stdio::piped());
        let mut child = started(&mut command);
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let url = format!("https://127.0.0.1:{}", port.trim());
        Self { child, url, authority: pem }
    }

    fn command(&self, place: &Place, key: &str, words: &[&str]) -> Command {
        let mut command = place.cofferdam(&[&["--server", &self.url], words].concat());
        command.env("COFFERDAM_KEY", key);
        command
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn a_server_behind_tls_is_asked_where_its_authority_is_known() {
    if !Path::new(PYTHON).exists() {
        return skipped("python3", "it speaks TLS before the server");
    }
    everyone(|place| {
        let key = key(place, "alice");
        let server = Server::start(place, "127.0.0.1:0");
        let front = Front::start(place, &server);
        let says = |words: &[&str], code: i32| -> Said {
            let mut command = front.command(place, &key, words);
            let said = outcome(command.env("SSL_CERT_FILE", &front.authority), SOON);
            assert_eq!(said.code(), Some(code), "{words:?}: {said:?}");
            said
        };
        says(&["create", "--name", "s"], 0);
        assert_eq!(says(&["exec", "s", "--", "echo", "hello"], 0).text(), "hello\n");
        says(&["exec", "s", "--id", "much", "--shell", "seq 1 20000; exit 3"], 3);
        let expected: String = (1..=20_000).map(|n| format!("{n}\n")).collect();
        assert!(says(&["logs", "-f", "s", "much"], 0).text() == expected);
        // Where the authority is not known nothing is told, the key least of all.
        let said = outcome(&mut front.command(place, &key, &["ls"]), SOON);
        assert_eq!(said.code(), Some(1), "{said:?}");
        assert!(
            said.stderr.contains("reach the server") && !said.stderr.contains(&key),
            "{said:?}"
        );
    });
}
