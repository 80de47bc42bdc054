//! Registries that attack who asks them. Each attack is refused, and nothing is left of it.

use crate::fake::{Asked, Fake, Images, endless, reply};
use crate::ground::{Ground, architecture, bytes, content};
use cofferdam_core::{Error, ErrorKind};
use cofferdam_image::{
    Digest, MAX_DOCUMENT_BYTES, MAX_IMAGE_PACKED_BYTES, MAX_LAYERS, MAX_PACKED_BYTES,
};
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

fn images() -> Images {
    let mut images = Images::default();
    images.image("v", &architecture(), &[bytes(1, 3000)]);
    images
}

/// What an image comes to of which each answer to `part` is given by `attack`. The control is the same
/// registry without the attack.
fn attacked(
    name: &str,
    part: &'static str,
    attack: impl Fn(&Asked, &mut TcpStream) + Send + Sync + 'static,
) -> Error {
    let mut ground = Ground::new(name);
    ground.limits.idle = Duration::from_secs(5);
    let held = images();
    let layer = layer(&held);
    let is_it = move |path: &str| match part {
        "layer" => path.ends_with(&layer),
        "config" => path.contains("/blobs/") && !path.ends_with(&layer),
        part => path.contains(part),
    };
    let served = held.clone();
    let fake = Fake::new(move |asked, stream| match is_it(&asked.path) {
        true => attack(asked, stream),
        false => served.serve(asked, stream),
    });
    let error = ground.refuses(&fake.name("x:v"));
    let honest = Fake::honest(&held);
    assert!(content(&ground.pull(&honest.name("x:v")).unwrap().0, "file0") == bytes(1, 3000));
    error
}

fn layer(images: &Images) -> String {
    let manifest: Value = serde_json::from_slice(&images.manifests["v"]).unwrap();
    manifest["layers"][0]["digest"].as_str().unwrap().to_owned()
}

/// What comes of a manifest.
fn pulled(name: &str, manifest: &Value) -> Error {
    let mut held = images();
    held.manifest("v", manifest);
    let ground = Ground::new(name);
    ground.refuses(&Fake::honest(&held).name("x:v"))
}

#[test]
fn a_body_without_an_end_is_read_to_its_bound() {
    let ends = |name: &str, part: &'static str| attacked(name, part, |_, stream| endless(stream));
    assert_eq!(ends("endless-manifest", "/manifests/").kind, ErrorKind::TooLarge);
    assert_eq!(ends("endless-config", "config").kind, ErrorKind::TooLarge);
    assert_eq!(ends("endless-layer", "layer").kind, ErrorKind::Denied);
}

#[test]
fn a_token_without_an_end_is_read_to_its_bound() {
    let error = attacked("endless-token", "/", |asked, stream| {
        if asked.path.starts_with("/token") {
            return endless(stream);
        }
        let realm = format!("Bearer realm=\"http://{}/token\"", asked.header("host"));
        reply(stream, 401, &[("www-authenticate", &realm)], b"");
    });
    assert_eq!(error.kind, ErrorKind::TooLarge);
}

#[test]
fn a_length_that_lies_is_believed_in_neither_way() {
    let long = format!("HTTP/1.1 200 X\r\ncontent-length: {}\r\n\r\n", MAX_DOCUMENT_BYTES + 1);
    let said = long.clone();
    let error = attacked("long-manifest", "/manifests/", move |_, stream| {
        let _ = stream.write_all(said.as_bytes());
    });
    assert_eq!(error.kind, ErrorKind::TooLarge);
    let error = attacked("long-layer", "layer", move |_, stream| {
        let _ = stream.write_all(long.as_bytes());
    });
    assert_eq!(error.kind, ErrorKind::Denied);
    assert!(error.message.contains("longer than"), "{error:?}");
    // One that is shorter, without any length said: each attempt comes to the same.
    let error = attacked("short-layer", "layer", |_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 X\r\nconnection: close\r\n\r\nshort");
    });
    assert_eq!(error.kind, ErrorKind::Denied);
    let error = attacked("short-manifest", "/manifests/", |_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 X\r\ncontent-length: 100\r\n\r\n{}");
    });
    assert_eq!(error.kind, ErrorKind::Unavailable);
}

#[test]
fn what_is_not_what_its_digest_says_is_refused() {
    let other = bytes(9, 3000);
    let size = images().blobs[&layer(&images())].len();
    let broken = bytes(9, size);
    let error = attacked("other-layer", "layer", move |_, stream| reply(stream, 200, &[], &broken));
    assert_eq!(error.kind, ErrorKind::Denied);
    assert!(error.message.contains("is another one"), "{error:?}");
    let error = attacked("other-config", "config", |_, stream| reply(stream, 200, &[], b"{}"));
    assert_eq!(error.kind, ErrorKind::Denied);
    // A pin is held against the manifest's own bytes, whatever the registry says of them.
    let (ground, held) = (Ground::new("pinned"), images());
    let fake = Fake::new(move |asked, stream| {
        let path = asked.path.rsplit_once('/').unwrap().0.to_owned() + "/v";
        match asked.path.contains("/manifests/") {
            true => held.serve(&Asked { path, ..asked.clone() }, stream),
            false => held.serve(asked, stream),
        }
    });
    let pin = Digest::of(&other);
    let error = ground.refuses(&fake.name(&format!("x@{pin}")));
    assert_eq!(error.kind, ErrorKind::Denied);
    let right = Digest::of(&images().manifests["v"]);
    ground.pull(&fake.name(&format!("x@{right}"))).unwrap();
}

#[test]
fn what_is_no_manifest_is_refused_and_not_shown() {
    for (name, answer) in [
        ("html", "<!doctype html><title>canary</title>"),
        ("empty", ""),
        ("text", "\"canary\""),
        ("wrong", "{\"config\":\"canary\",\"layers\":[]}"),
    ] {
        let error = attacked(name, "/manifests/", move |_, stream| {
            reply(stream, 200, &[("content-type", "text/html")], answer.as_bytes());
        });
        assert_eq!(error.kind, ErrorKind::Protocol, "{name}");
        assert!(!error.chain().contains("canary"), "{error:?}");
    }
}

#[test]
fn an_image_has_as_many_and_as_large_layers_as_are_believed() {
    let manifest: Value = serde_json::from_slice(&images().manifests["v"]).unwrap();
    let (config, layer) = (&manifest["config"], &manifest["layers"][0]);
    let of = |layers: Vec<Value>| json!({"schemaVersion": 2, "config": config, "layers": layers});
    let sized = |size: u64| {
        let mut layer = layer.clone();
        layer["size"] = json!(size);
        layer
    };
    let many = pulled("65", &of(vec![layer.clone(); MAX_LAYERS + 1]));
    assert_eq!(many.kind, ErrorKind::TooLarge);
    let million =
        format!(r#"{{"config":{config},"layers":[{}"#, format!("{layer},").repeat(1_000_000));
    let mut held = images();
    held.manifests.insert("v".to_owned(), million.into_bytes());
    let error = Ground::new("million").refuses(&Fake::honest(&held).name("x:v"));
    assert_eq!(error.kind, ErrorKind::TooLarge);
    let large = pulled("large", &of(vec![sized(MAX_PACKED_BYTES + 1)]));
    assert!(large.message.contains("a layer of it has more"), "{large:?}");
    let count = usize::try_from(MAX_IMAGE_PACKED_BYTES / MAX_PACKED_BYTES).unwrap() + 1;
    let all = pulled("together", &of(vec![sized(MAX_PACKED_BYTES); count]));
    assert!(all.message.contains("together"), "{all:?}");
    let mut huge = of(vec![layer.clone()]);
    huge["config"]["size"] = json!(MAX_DOCUMENT_BYTES + 1);
    assert!(pulled("huge", &huge).message.contains("configuration"));
    assert_eq!(pulled("none", &of(Vec::new())).kind, ErrorKind::NotAFile);
}

#[test]
fn lists_that_lead_nowhere_come_to_an_end() {
    let host = json!({"os": "linux", "architecture": architecture()});
    let mut held = images();
    let list = |of: &Value| {
        let mut one = of.clone();
        one["platform"] = host.clone();
        json!({"schemaVersion": 2, "manifests": [one]})
    };
    // One that names itself lies about its digest.
    let itself = json!({"digest": Digest::of(b"x"), "size": 1});
    held.manifest("itself", &list(&itself));
    let bytes = held.manifests["itself"].clone();
    held.manifests.insert(Digest::of(b"x").to_string(), bytes);
    let mut deep = held.image("end", &architecture(), &[bytes_of_one()]);
    for _ in 0..5 {
        deep = held.manifest("deep", &list(&deep));
    }
    let both = json!({"manifests": [], "config": itself, "layers": []});
    held.manifest("both", &both);
    held.manifest("many", &json!({"manifests": vec![itself; 1025]}));
    let fake = Fake::honest(&held);
    let ground = Ground::new("lists");
    assert_eq!(ground.refuses(&fake.name("x:itself")).kind, ErrorKind::Denied);
    assert_eq!(ground.refuses(&fake.name("x:deep")).kind, ErrorKind::TooLarge);
    assert_eq!(ground.refuses(&fake.name("x:both")).kind, ErrorKind::Unsupported);
    assert_eq!(ground.refuses(&fake.name("x:many")).kind, ErrorKind::TooLarge);
    ground.pull(&fake.name("x:end")).unwrap();
}

fn bytes_of_one() -> Vec<u8> {
    bytes(5, 10)
}

#[test]
fn redirects_come_to_an_end_and_lead_to_no_other_protocol() {
    let to = |name: &str, location: &'static str| {
        attacked(name, "/manifests/", move |asked, stream| {
            let location = if location == "self" { &asked.path } else { location };
            reply(stream, 302, &[("location", location)], b"");
        })
    };
    let around = to("around", "self");
    assert!(around.message.contains("more than 5 times"), "{around:?}");
    for (name, location) in [
        ("plain", "http://a.example/x"),
        ("file", "file:///etc/passwd"),
        ("named", "http://me:canary@127.0.0.1:1/"),
        ("nowhere", "http://["),
    ] {
        let error = to(name, location);
        assert!(matches!(error.kind, ErrorKind::Denied | ErrorKind::Protocol), "{error:?}");
        assert!(!error.chain().contains("canary"));
    }
}

#[test]
fn who_says_nothing_is_not_waited_for_and_headers_are_bounded() {
    let mut ground = Ground::new("silent");
    ground.limits.idle = Duration::from_millis(200);
    let held = images();
    let fake = Fake::new(move |asked, stream| match asked.path.contains("/manifests/") {
        // Until the other side hangs up.
        true => drop(std::io::copy(&mut stream.try_clone().unwrap(), &mut std::io::sink())),
        false => held.serve(asked, stream),
    });
    assert_eq!(ground.refuses(&fake.name("x:v")).kind, ErrorKind::TimedOut);
    // Drop by drop: the whole has a bound too.
    let mut ground = Ground::new("slow");
    ground.limits.document = Duration::from_millis(500);
    let held = images();
    let fake = Fake::new(move |asked, stream| {
        if !asked.path.contains("/manifests/") {
            return held.serve(asked, stream);
        }
        let _ = stream.write_all(b"HTTP/1.1 200 X\r\nconnection: close\r\n\r\n");
        while stream.write_all(b" ").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    assert_eq!(ground.refuses(&fake.name("x:v")).kind, ErrorKind::TimedOut);
    let error = attacked("headers", "/manifests/", |_, stream| {
        let many: String = (0..200).map(|number| format!("x{number}: y\r\n")).collect();
        let head = format!("HTTP/1.1 200 X\r\n{many}content-length: 0\r\n\r\n");
        let _ = stream.write_all(head.as_bytes());
    });
    assert_eq!(error.kind, ErrorKind::Unavailable);
}

#[test]
fn a_layer_that_never_comes_whole_ends_after_some_attempts_and_too_slow_a_one_in_time() {
    let mut ground = Ground::new("attempts");
    let held = images();
    let layer = layer(&held);
    let served = held.clone();
    let digest = layer.clone();
    let fake = Fake::new(move |asked, stream| match asked.path.ends_with(&digest) {
        true => reply(stream, 503, &[], b""),
        false => served.serve(asked, stream),
    });
    assert_eq!(ground.pull(&fake.name("x:v")).map(drop).unwrap_err().kind, ErrorKind::Unavailable);
    assert_eq!(fake.count(&layer), 3);
    ground.limits.document = Duration::from_millis(500);
    let slow = Fake::new(move |asked, stream| {
        if !asked.path.ends_with(&layer) {
            return held.serve(asked, stream);
        }
        let size = held.blobs[&layer].len();
        let _ = stream
            .write_all(format!("HTTP/1.1 200 X\r\ncontent-length: {size}\r\n\r\n").as_bytes());
        while stream.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    ground.limits.bytes_per_second = u64::MAX;
    assert_eq!(ground.pull(&slow.name("x:v")).map(drop).unwrap_err().kind, ErrorKind::TimedOut);
}
