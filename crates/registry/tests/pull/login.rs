//! Who one is to a registry, and who else hears of it.

use crate::fake::{Asked, Fake, Images, reply};
use crate::ground::{Ground, architecture, bytes};
use cofferdam_core::ErrorKind;
use std::net::{SocketAddr, TcpStream};

/// What nobody but the registry may hear. In base 64, with the name `me`, `bWU6Y2FuYXJ5`.
const PASSWORD: &str = "canary";
const ENCODED: &str = "bWU6Y2FuYXJ5";
const TOKEN: &str = "token-canary";

fn images() -> Images {
    let mut images = Images::default();
    images.image("v", &architecture(), &[bytes(1, 1000)]);
    images
}

/// A registry that wants a token, which it gives out itself to whom `knows` approves.
fn with_tokens(images: Images, knows: fn(&Asked) -> bool) -> Fake {
    Fake::new(move |asked, stream| {
        if asked.path.starts_with("/token") {
            return match knows(asked) {
                true => reply(stream, 200, &[], format!("{{\"token\":\"{TOKEN}\"}}").as_bytes()),
                // It says again what it was told.
                false => reply(stream, 401, &[], asked.header("authorization").as_bytes()),
            };
        }
        if asked.header("authorization") == format!("Bearer {TOKEN}") {
            return images.serve(asked, stream);
        }
        let realm = format!(r#"Bearer realm="http://{}/token",service="s""#, asked.header("host"));
        reply(
            stream,
            401,
            &[("www-authenticate", &realm)],
            asked.header("authorization").as_bytes(),
        );
    })
}

fn log_in(ground: &mut Ground, address: SocketAddr, entry: &str) {
    let path = ground.path.join("auth.json");
    std::fs::write(&path, format!(r#"{{"auths":{{"{address}":{entry}}}}}"#)).unwrap();
    ground.places.named = Some(path);
}

/// Looks for secrets in all that the store holds, but for the file that they came from.
fn is_clean(ground: &Ground) -> bool {
    let said = std::process::Command::new("grep")
        .args(["-rlE", &format!("{PASSWORD}|{ENCODED}")])
        .arg(ground.path.join("images"))
        .output()
        .unwrap();
    said.stdout.is_empty()
}

#[test]
fn a_token_is_got_with_a_password_with_an_identity_or_without_anything() {
    let password = format!(r#"{{"auth":"{ENCODED}"}}"#);
    let identity = format!(r#"{{"identitytoken":"{PASSWORD}"}}"#);
    let knows_password: fn(&Asked) -> bool = |asked| {
        let scope = "service=s&scope=repository%3Ax%2Fy%3Apull";
        asked.header("authorization") == format!("Basic {ENCODED}") && asked.path.ends_with(scope)
    };
    let knows_identity: fn(&Asked) -> bool = |asked| {
        asked.body.contains("grant_type=refresh_token")
            && asked.body.contains(&format!("refresh_token={PASSWORD}"))
            && !asked.path.contains(PASSWORD)
    };
    let knows_all: fn(&Asked) -> bool = |asked| asked.header("authorization").is_empty();
    for (name, entry, knows) in [
        ("password", Some(password.as_str()), knows_password),
        ("identity", Some(&identity), knows_identity),
        ("anybody", None, knows_all),
    ] {
        let mut ground = Ground::new(name);
        let fake = with_tokens(images(), knows);
        if let Some(entry) = entry {
            log_in(&mut ground, fake.address, entry);
        }
        ground.pull(&fake.name("x/y:v")).unwrap();
        assert_eq!(fake.count("/token"), 1, "{name}");
        assert!(is_clean(&ground), "{name}");
    }
}

#[test]
fn a_password_is_said_only_to_who_wants_it() {
    let mut ground = Ground::new("basic");
    let held = images();
    let fake = Fake::new(move |asked, stream| {
        match asked.header("authorization") == format!("Basic {ENCODED}") {
            true => held.serve(asked, stream),
            false => reply(stream, 401, &[("www-authenticate", "Basic realm=\"r\"")], b""),
        }
    });
    log_in(&mut ground, fake.address, &format!(r#"{{"auth":"{ENCODED}"}}"#));
    ground.pull(&fake.name("x:v")).unwrap();
    let open = Fake::honest(&images());
    log_in(&mut ground, open.address, &format!(r#"{{"auth":"{ENCODED}"}}"#));
    ground.pull(&open.name("x:v")).unwrap();
    assert!(open.asked().iter().all(|asked| asked.header("authorization").is_empty()));
}

#[test]
fn who_is_refused_hears_where_was_looked_and_no_secret() {
    let mut ground = Ground::new("refused");
    let fake = with_tokens(images(), |_| false);
    let error = ground.refuses(&fake.name("x:v"));
    assert_eq!(error.kind, ErrorKind::Denied);
    assert!(error.message.contains("wants credentials") && error.message.contains("x:v"));
    assert!(error.hint.unwrap().contains("docker login"));
    log_in(&mut ground, fake.address, &format!(r#"{{"auth":"{ENCODED}"}}"#));
    let error = ground.refuses(&fake.name("x:v"));
    assert!(error.message.contains("refuses these credentials"), "{error:?}");
    assert!(error.message.contains("auth.json: knows"), "{error:?}");
    let shown = format!("{error:?} {} {:?}", error.chain(), error.hint);
    assert!(!shown.contains(PASSWORD) && !shown.contains(ENCODED), "{shown}");
    // The registry did hear it, and said it again.
    assert!(fake.asked().iter().any(|asked| asked.header("authorization").contains(ENCODED)));
}

#[test]
fn nobody_that_a_registry_leads_to_hears_who_one_is() {
    let (held, far) = (images(), images());
    let elsewhere = Fake::new(move |asked, stream| far.serve(asked, stream));
    let place = elsewhere.address;
    let same_place = |asked: &Asked, stream: &mut TcpStream, to: String| {
        let path = asked.path.replace("/blobs/", "/moved/blobs/");
        reply(stream, 307, &[("location", &format!("{to}{path}"))], b"");
    };
    for is_elsewhere in [true, false] {
        let mut ground = Ground::new(if is_elsewhere { "elsewhere" } else { "same" });
        let held = held.clone();
        let fake = Fake::new(move |asked, stream| {
            if asked.header("authorization") != format!("Basic {ENCODED}") {
                return reply(stream, 401, &[("www-authenticate", "Basic")], b"");
            }
            match asked.path.contains("/x/blobs/") {
                true if is_elsewhere => same_place(asked, stream, format!("http://{place}")),
                true => same_place(asked, stream, String::new()),
                false => held.serve(asked, stream),
            }
        });
        log_in(&mut ground, fake.address, &format!(r#"{{"auth":"{ENCODED}"}}"#));
        ground.pull(&fake.name("x:v")).unwrap();
        let heard = if is_elsewhere { elsewhere.asked() } else { fake.asked() };
        let moved: Vec<_> = heard.iter().filter(|asked| asked.path.contains("/moved/")).collect();
        assert_eq!(moved.len(), 2);
        let knows = |asked: &Asked| asked.headers.values().any(|value| value.contains(ENCODED));
        // The control: at the same place the credentials do go along.
        assert_eq!(moved.into_iter().any(knows), !is_elsewhere);
    }
}

#[test]
fn a_place_for_tokens_must_be_encrypted_and_may_not_move_a_secret() {
    let mut ground = Ground::new("realm");
    let caught = Fake::new(|_, stream| reply(stream, 200, &[], b"{\"token\":\"x\"}"));
    let place = caught.address;
    for (realm, secret) in [
        ("http://tokens.example/".to_owned(), "password"),
        ("file:///etc/passwd".to_owned(), "password"),
        ("http://me:canary@127.0.0.1:1/".to_owned(), "password"),
        ("no place".to_owned(), "password"),
        (String::new(), "identity"),
    ] {
        let fake = Fake::new(move |asked, stream| {
            let own = format!("http://{}/token", asked.header("host"));
            let realm = if realm.is_empty() { &own } else { &realm };
            match asked.path.starts_with("/token") {
                true => reply(stream, 307, &[("location", &format!("http://{place}/"))], b""),
                false => {
                    let header = format!("Bearer realm=\"{realm}\"");
                    reply(stream, 401, &[("www-authenticate", &header)], b"");
                }
            }
        });
        let entry = match secret {
            "identity" => format!(r#"{{"identitytoken":"{PASSWORD}"}}"#),
            _ => format!(r#"{{"auth":"{ENCODED}"}}"#),
        };
        log_in(&mut ground, fake.address, &entry);
        let error = ground.refuses(&fake.name("x:v"));
        assert!(!error.chain().contains(PASSWORD), "{error:?}");
    }
    assert!(caught.asked().is_empty());
}

/// A name of this machine that does not say so by itself, and its address.
fn other_name() -> Option<(String, String)> {
    let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    let named = hosts.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let address = words.next().filter(|address| address.starts_with("127."))?;
        let name = words.find(|name| !name.starts_with("localhost"))?;
        Some((name.to_owned(), address.to_owned()))
    });
    if named.is_none() {
        println!("skipped: hosts: /etc/hosts has no other name of this machine than localhost");
    }
    named
}

#[test]
fn a_name_is_asked_without_encryption_only_where_the_caller_says_so() {
    let Some((name, address)) = other_name() else { return };
    let mut ground = Ground::new("insecure");
    let held = images();
    let fake = Fake::at(&address, move |asked, stream| held.serve(asked, stream));
    let registry = format!("{name}:{}", fake.address.port());
    for other in ["", "other.example", "1", &registry[..registry.len() - 1]] {
        ground.trust.insecure = vec![other.to_owned()];
        let error = ground.refuses(&format!("{registry}/x:v"));
        assert!(error.hint.unwrap().contains("--insecure-registry"));
        assert!(fake.asked().is_empty());
    }
    for allowed in [&registry, &name] {
        ground.trust.insecure = vec![allowed.clone()];
        ground.pull(&format!("{registry}/x:v")).unwrap();
    }
}
