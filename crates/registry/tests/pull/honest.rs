//! What comes of an honest registry.

use crate::fake::{Fake, Images};
use crate::ground::{Ground, architecture, bytes, content};
use cofferdam_core::ErrorKind;
use cofferdam_image::{Event, Platform, Remote};
use serde_json::json;
use std::sync::{Arc, Mutex};

#[test]
fn an_image_is_pulled_once_and_its_layers_are_shared() {
    let ground = Ground::new("shared");
    let (base, top, other) = (bytes(1, 9000), bytes(2, 100), bytes(3, 100));
    let mut images = Images::default();
    images.image("one", &architecture(), &[base.clone(), top.clone(), top.clone()]);
    images.image("two", &architecture(), &[base.clone(), other.clone()]);
    let fake = Fake::honest(&images);
    let (image, events) = ground.pull(&fake.name("a/b:one")).unwrap();
    assert_eq!((content(&image, "file0"), content(&image, "file1")), (base, top));
    assert_eq!(image.name, fake.name("a/b:one"));
    assert!(matches!(&events[0], Event::Resolved { digest, .. } if digest.starts_with("sha256:")));
    let downloaded = events.iter().filter(|event| matches!(event, Event::Downloaded { .. }));
    assert_eq!(downloaded.count(), 3);
    // The configuration and three layers.
    assert_eq!(fake.count("/v2/a/b/blobs/"), 4);
    let (second, _) = ground.pull(&fake.name("a/b:two")).unwrap();
    assert_eq!(content(&second, "file1"), other);
    assert_eq!(fake.count("/v2/a/b/blobs/"), 6, "a layer that was there came again");
    // Again: the registry says what the name means, and no layer moves.
    ground.pull(&fake.name("a/b:one")).unwrap();
    assert_eq!(fake.count("/v2/a/b/blobs/"), 7);
    assert_eq!(ground.left(), (4, 2, 0));
}

#[test]
fn the_same_layer_twice_is_fetched_once() {
    let ground = Ground::new("twice");
    let mut images = Images::default();
    images.image("v", &architecture(), &[bytes(1, 10)]);
    let manifest: serde_json::Value = serde_json::from_slice(&images.manifests["v"]).unwrap();
    let layer = manifest["layers"][0].clone();
    let configuration = json!({"architecture": architecture(), "os": "linux",
        "rootfs": {"diff_ids": [layer["digest"], layer["digest"]]}});
    let config = images.blob(configuration.to_string().into_bytes());
    images.manifest("v", &json!({"config": config, "layers": [layer, layer]}));
    let fake = Fake::honest(&images);
    let (image, _) = ground.pull(&fake.name("x:v")).unwrap();
    assert_eq!((image.layers.len(), fake.count("/blobs/"), ground.left()), (2, 2, (1, 1, 0)));
}

#[test]
fn what_was_pulled_is_known_by_tag_digest_and_platform_without_asking() {
    let ground = Ground::new("known");
    let mut images = Images::default();
    let ours = images.image("v", &architecture(), &[bytes(1, 10)]);
    let other = images.image("other", "riscv64", &[bytes(2, 10)]);
    let for_platform = |value: &serde_json::Value, architecture: &str| {
        let mut value = value.clone();
        value["platform"] = json!({"os": "linux", "architecture": architecture});
        value
    };
    let all = [for_platform(&other, "riscv64"), for_platform(&ours, &architecture())];
    let list = images.manifest("list", &json!({"schemaVersion": 2, "manifests": all}));
    let fake = Fake::honest(&images);
    ground.pull(&fake.name("x:list")).unwrap();
    let riscv = "linux/riscv64".parse().unwrap();
    let (foreign, _) = ground.pull_for(&fake.name("x:list"), &riscv).unwrap();
    let asked = fake.asked().len();
    let known = |rest: &str, platform: &Platform| {
        let remote = Remote::parse(&fake.name(rest)).unwrap();
        ground.store().pulled(&remote, platform).unwrap().map(|(image, _)| image.id)
    };
    let host = Platform::host();
    let id = known("x:list", &host).unwrap();
    assert_eq!(known("x:list", &riscv), Some(foreign.id));
    for digest in [&list["digest"], &ours["digest"]] {
        let pinned = format!("x@{}", digest.as_str().unwrap());
        assert_eq!(known(&pinned, &host).as_ref(), Some(&id), "{pinned}");
    }
    for rest in ["x:v", "y:list", &format!("x@{}", other["digest"].as_str().unwrap())] {
        assert_eq!(known(rest, &host), None, "{rest}");
    }
    // A name alone is the image of this machine.
    assert_eq!(ground.store().find(&fake.name("x:list")).unwrap().image.id.as_str(), id);
    assert_eq!(fake.asked().len(), asked);
    let error = ground.pull_for(&fake.name("x:list"), &"linux/s390x".parse().unwrap()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.message.contains("linux/riscv64") && error.message.contains("linux/s390x"));
}

#[test]
fn a_tag_means_what_it_meant_last_and_a_digest_always_the_same() {
    let ground = Ground::new("moved");
    let held = Arc::new(Mutex::new(Images::default()));
    let served = held.clone();
    let fake = Fake::new(move |asked, stream| served.lock().unwrap().serve(asked, stream));
    let image = |number| {
        let layers = [bytes(number, 10)];
        held.lock().unwrap().image("v", &architecture(), &layers)["digest"].clone()
    };
    let pinned = fake.name(&format!("x@{}", image(1).as_str().unwrap()));
    let (before, _) = ground.pull(&fake.name("x:v")).unwrap();
    ground.pull(&pinned).unwrap();
    image(2);
    let (after, _) = ground.pull(&fake.name("x:v")).unwrap();
    assert_ne!(before.id, after.id);
    let known = |name: &str| {
        let remote = Remote::parse(name).unwrap();
        ground.store().pulled(&remote, &Platform::host()).unwrap().unwrap().0.id
    };
    assert_eq!((known(&fake.name("x:v")), known(&pinned)), (after.id, before.id.clone()));
    // One name, one image; the other one is still there by its digest.
    let found = ground.store().find(&fake.name("x:v")).unwrap().image;
    assert_eq!(found.pulled.len(), 1);
    let other = ground.store().find(&before.id).unwrap().image;
    assert_eq!((other.names, other.pulled[0].tag.clone()), (vec![pinned], None));
}

#[test]
fn two_pulls_at_once_download_once() {
    let ground = Ground::new("at-once");
    let mut images = Images::default();
    images.image("v", &architecture(), &[bytes(1, 300_000), bytes(2, 300_000), bytes(3, 300_000)]);
    let fake = Fake::honest(&images);
    let name = fake.name("x:v");
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..4).map(|_| scope.spawn(|| ground.pull(&name).unwrap())).collect();
        let ids = all.into_iter().map(|one| one.join().unwrap().0.id);
        assert_eq!(ids.collect::<std::collections::BTreeSet<_>>().len(), 1);
    });
    for digest in images.blobs.keys() {
        let is_layer = images.blobs[digest].len() > 100_000;
        assert!(!is_layer || fake.count(digest) == 1, "{digest}");
    }
    assert_eq!(ground.left(), (3, 1, 0));
}

#[test]
fn an_error_names_the_image_and_the_remedy() {
    let ground = Ground::new("errors");
    let mut images = Images::default();
    images.image("v", &architecture(), &[bytes(1, 10)]);
    let fake = Fake::honest(&images);
    let error = ground.refuses(&fake.name("x:none"));
    assert_eq!(error.kind, ErrorKind::NotFound);
    assert!(error.message.contains("x:none") && error.hint.unwrap().contains("the tag"));
    let gone = { Fake::honest(&images).name("x:v") };
    let error = ground.refuses(&gone);
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.message.contains("refused the connection"), "{error:?}");
    assert!(error.hint.unwrap().contains("HTTPS_PROXY"));
}
