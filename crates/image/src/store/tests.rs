use super::*;
use crate::digest::Digest;
use crate::progress::Silent;
use crate::reference::Reference;
use crate::tar::tests::Written;
use cofferdam_core::Image;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

/// A directory of one test's own.
pub(super) struct Ground(pub(super) PathBuf);

impl Ground {
    pub(super) fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("cofferdam-store-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("state")).unwrap();
        Self(path)
    }

    pub(super) fn store(&self) -> Store {
        Store::open(&self.0.join("state")).unwrap()
    }

    pub(super) fn open(&self, reference: &str) -> Result<(Image, Held)> {
        let reference = Reference::parse(reference, &self.0).unwrap();
        self.store().open_image(&reference, &mut Silent)
    }

    fn staged(&self) -> usize {
        std::fs::read_dir(self.0.join("state/images/staging")).unwrap().count()
    }

    fn layers(&self) -> usize {
        std::fs::read_dir(self.0.join("state/images/layers")).unwrap().count()
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Writes a layout as tools do.
struct Layout {
    path: PathBuf,
    config: Value,
    manifests: Vec<Value>,
}

impl Layout {
    fn new(path: PathBuf) -> Self {
        std::fs::create_dir_all(path.join("blobs/sha256")).unwrap();
        std::fs::write(path.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
        let config = json!({"Env": ["A=b=c"], "Cmd": ["sh"], "WorkingDir": "/w", "User": "0"});
        Self { path, config, manifests: Vec::new() }
    }

    fn blob(&self, bytes: &[u8]) -> Value {
        let digest = Digest::of(bytes);
        std::fs::write(self.path.join("blobs/sha256").join(digest.hex()), bytes).unwrap();
        json!({"mediaType": "x", "digest": digest, "size": bytes.len()})
    }

    fn image(&mut self, tag: &str, architecture: &str, layers: &[(Vec<u8>, Vec<u8>)]) -> &mut Self {
        let diff_ids: Vec<_> = layers.iter().map(|(plain, _)| Digest::of(plain)).collect();
        let layers: Vec<_> = layers.iter().map(|(_, packed)| self.blob(packed)).collect();
        let configuration = json!({
            "architecture": architecture, "os": "linux",
            "config": self.config,
            "rootfs": {"type": "layers", "diff_ids": diff_ids},
        });
        let config = self.blob(configuration.to_string().as_bytes());
        let manifest = json!({"schemaVersion": 2, "config": config, "layers": layers});
        let mut descriptor = self.blob(manifest.to_string().as_bytes());
        descriptor["annotations"] = json!({"org.opencontainers.image.ref.name": tag});
        self.manifests.push(descriptor);
        std::fs::write(
            self.path.join("index.json"),
            json!({"schemaVersion": 2, "manifests": self.manifests}).to_string(),
        )
        .unwrap();
        self
    }
}

pub(super) fn layer(name: &str) -> Vec<u8> {
    Written::default().file(name, name.as_bytes()).done()
}

fn has(image: &Image, name: &str) -> bool {
    image.layers.iter().any(|layer| layer.tree.join(name).exists())
}

#[test]
fn a_layout_is_unpacked_once_whatever_its_layers_are_packed_with() {
    let ground = Ground::new("layout");
    let (base, top, last) = (layer("base"), layer("top"), layer("last"));
    let packed = [(base.clone(), gzip(&base)), (top.clone(), zstd(&top)), (last.clone(), last)];
    Layout::new(ground.0.join("oci")).image("v1", crate::platform::host(), &packed);
    let (image, _held) = ground.open("oci:oci:v1").unwrap();
    assert!(image.layers[0].tree.join("last").exists(), "the uppermost comes first");
    assert!(has(&image, "base") && has(&image, "top"));
    assert_eq!(image.run.env, [("A".to_owned(), "b=c".to_owned())]);
    assert_eq!((image.run.cwd.as_deref(), image.run.is_root()), (Some("/w"), true));
    // A mark in an unpacked layer is there the second time: it was not unpacked again.
    std::fs::write(image.layers[0].tree.join("mark"), "").unwrap();
    let (again, _held) = ground.open("oci").unwrap();
    assert!(again.layers == image.layers && has(&again, "mark"));
    assert_eq!((ground.layers(), ground.staged()), (3, 0));
}

#[test]
fn what_is_not_what_its_digest_says_is_refused_and_leaves_nothing() {
    let ground = Ground::new("digest");
    let (plain, other) = (layer("base"), layer("other"));
    for (name, what) in [("packed", 0), ("diff", 1), ("config", 2), ("manifest", 3), ("size", 4)] {
        let path = ground.0.join(name);
        let mut layout = Layout::new(path.clone());
        let promised = if what == 1 { other.clone() } else { plain.clone() };
        layout.image("v1", crate::platform::host(), &[(promised, plain.clone())]);
        let change = |digest: &Value| {
            let hex = digest.as_str().unwrap().strip_prefix("sha256:").unwrap();
            let path = path.join("blobs/sha256").join(hex);
            let mut bytes = std::fs::read(&path).unwrap();
            if what == 4 {
                bytes.extend([0; 512])
            } else {
                bytes.push(b' ')
            };
            std::fs::write(path, bytes).unwrap();
        };
        let read = |digest: &Value| -> Value {
            let hex = digest.as_str().unwrap().strip_prefix("sha256:").unwrap();
            serde_json::from_slice(&std::fs::read(path.join("blobs/sha256").join(hex)).unwrap())
                .unwrap()
        };
        let manifest = layout.manifests[0]["digest"].clone();
        match what {
            0 | 4 => change(&read(&manifest)["layers"][0]["digest"]),
            2 => change(&read(&manifest)["config"]["digest"]),
            3 => change(&manifest),
            _ => {}
        }
        let error = ground.open(&format!("oci:{name}")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied, "{name}: {error}");
    }
    assert_eq!((ground.layers(), ground.staged()), (0, 0));
    // Control: the same image unchanged.
    let mut layout = Layout::new(ground.0.join("right"));
    layout.image("v1", crate::platform::host(), &[(plain.clone(), plain)]);
    assert!(ground.open("oci:right").is_ok());
}

#[test]
fn the_image_that_is_meant_is_found_or_the_others_are_named() {
    let ground = Ground::new("meant");
    let mut layout = Layout::new(ground.0.join("oci"));
    let one = |name: &str| [(layer(name), layer(name))];
    layout.image("app:v1", crate::platform::host(), &one("first"));
    layout.image("app:v2", crate::platform::host(), &one("second"));
    layout.image("strange", "pdp11", &one("third"));
    assert!(has(&ground.open("oci:oci:v2").unwrap().0, "second"));
    assert!(has(&ground.open("oci:oci:app:v1").unwrap().0, "first"));
    for (name, kind, says) in [
        ("oci:oci", ErrorKind::Usage, "app:v1, app:v2, strange"),
        ("oci:oci:v3", ErrorKind::NotFound, "app:v1, app:v2, strange"),
        ("oci:oci:strange", ErrorKind::Unsupported, "pdp11"),
    ] {
        let error = ground.open(name).unwrap_err();
        assert!(error.kind == kind && error.message.contains(says), "{name}: {error}");
    }
}

fn saved(layers: &[(&str, Vec<u8>)], link: Option<(&str, &str)>) -> Vec<u8> {
    let diff_ids: Vec<_> = layers.iter().map(|(_, bytes)| Digest::of(bytes)).collect();
    let configuration = json!({
        "architecture": crate::platform::host(), "os": "linux",
        "config": {"Entrypoint": ["/init"]}, "rootfs": {"diff_ids": diff_ids},
    });
    let configuration = configuration.to_string();
    let name = format!("{}.json", Digest::of(configuration.as_bytes()).hex());
    let names: Vec<_> = layers.iter().map(|(name, _)| *name).collect();
    let list = json!([{"Config": name, "RepoTags": ["busybox:latest"], "Layers": names}]);
    let mut tar = Written::default().file(&name, configuration.as_bytes());
    for (name, bytes) in layers {
        tar = match link {
            Some((link, target)) if link == *name => tar.symlink(link, target),
            _ => tar.file(name, bytes),
        };
    }
    tar.file("manifest.json", list.to_string().as_bytes()).done()
}

#[test]
fn an_archive_of_docker_is_read_packed_or_not_and_its_links_stay_within() {
    let ground = Ground::new("docker");
    let (base, top) = (layer("base"), layer("top"));
    let layers = [("a/layer.tar", base.clone()), ("b/layer.tar", top)];
    let bytes = saved(&layers, None);
    std::fs::write(ground.0.join("plain.tar"), &bytes).unwrap();
    std::fs::write(ground.0.join("packed.tgz"), gzip(&bytes)).unwrap();
    let (image, _held) = ground.open("plain.tar").unwrap();
    assert!(has(&image, "base") && has(&image, "top"));
    assert_eq!(image.run.entrypoint, ["/init"]);
    assert_eq!(ground.open("packed.tgz").unwrap().0.id, image.id);
    assert!(ground.open("docker-archive:plain.tar:busybox:latest").is_ok());
    assert!(ground.open("docker-archive:plain.tar:none").is_err());
    let twice = [("a/layer.tar", base.clone()), ("b/layer.tar", base.clone())];
    let linked = saved(&twice, Some(("b/layer.tar", "../a/layer.tar")));
    std::fs::write(ground.0.join("in.tar"), linked).unwrap();
    ground.open("docker-archive:in.tar").unwrap();
    let other = [("a/layer.tar", base), ("b/layer.tar", layer("not here yet"))];
    let linked = saved(&other, Some(("b/layer.tar", "../../../../../../../../etc/passwd")));
    std::fs::write(ground.0.join("out.tar"), linked).unwrap();
    let error = ground.open("docker-archive:out.tar").unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
}

#[test]
fn a_tar_file_is_unpacked_once_until_it_changes() {
    let ground = Ground::new("tar");
    let path = ground.0.join("root.tgz");
    std::fs::write(&path, gzip(&layer("one"))).unwrap();
    let (one, _held) = ground.open("root.tgz").unwrap();
    std::fs::write(one.layers[0].tree.join("mark"), "").unwrap();
    assert!(has(&ground.open("tar:root.tgz").unwrap().0, "mark"));
    std::fs::write(&path, zstd(&layer("two"))).unwrap();
    let (two, _held) = ground.open("root.tgz").unwrap();
    assert!(has(&two, "two") && !has(&two, "one"));
    assert!(ground.open(&two.id[..20]).is_ok(), "an id may be cut short");
}

#[test]
fn a_name_means_what_was_imported_by_it_last_and_nothing_else() {
    let ground = Ground::new("names");
    for name in ["one", "two"] {
        std::fs::write(ground.0.join(name), layer(name)).unwrap();
    }
    let (link, next) = (ground.0.join("root"), ground.0.join("next"));
    let open = |target: &str| {
        std::os::unix::fs::symlink(target, &next).unwrap();
        std::fs::rename(&next, &link).unwrap();
        ground.open("tar:root").unwrap().0
    };
    let (store, name) = (ground.store(), format!("tar:{}", link.display()));
    let named = || -> Vec<String> {
        store.list().unwrap().iter().flat_map(|report| report.image.names.clone()).collect()
    };
    // The last time nothing is read: it is known what the file holds.
    for target in ["one", "two", "one"] {
        let image = open(target);
        assert!(has(&image, target));
        assert_eq!(store.find(&name).unwrap().image.id.to_string(), image.id, "{target}");
        assert_eq!(named(), [name.as_str()], "{target}");
    }
    // The same of a name in a layout, and the image keeps its other names.
    let layout = |content: &str| {
        let mut layout = Layout::new(ground.0.join("oci"));
        layout.image("v1", crate::platform::host(), &[(layer(content), layer(content))]);
        ground.open("oci:oci:v1").unwrap().0
    };
    let first = layout("first");
    ground.open("oci:oci").unwrap();
    let second = layout("second");
    let names = |id: &str| store.find(id).unwrap().image.names;
    assert_eq!(names(&first.id), [format!("oci:{}", ground.0.join("oci").display())]);
    assert_eq!(names(&second.id), [second.name]);
    let removed = store.remove(&name, &BTreeSet::new()).unwrap();
    assert_eq!(removed.images.len(), 1, "it can be removed by its name");
}

#[test]
fn a_plain_directory_is_used_where_it_is() {
    let ground = Ground::new("dir");
    std::fs::create_dir(ground.0.join("root")).unwrap();
    let (image, _held) = ground.open("root").unwrap();
    assert_eq!(image.layers[0].tree, ground.0.join("root"));
    assert!(ground.open("dir:none").is_err());
}

#[test]
fn many_at_once_unpack_a_layer_once() {
    let ground = Ground::new("many");
    let plain = (0..200).fold(Written::default(), |w, n| w.file(&n.to_string(), &[7; 4096])).done();
    Layout::new(ground.0.join("oci")).image(
        "v1",
        crate::platform::host(),
        &[(plain.clone(), gzip(&plain))],
    );
    let unpacked = std::sync::atomic::AtomicUsize::new(0);
    struct Counting<'a>(&'a std::sync::atomic::AtomicUsize);
    impl crate::Progress for Counting<'_> {
        fn tell(&mut self, event: crate::Event) {
            if matches!(event, crate::Event::Unpacked { .. }) {
                self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        }
    }
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let reference = Reference::parse("oci:oci", &ground.0).unwrap();
                ground.store().open_image(&reference, &mut Counting(&unpacked)).unwrap();
            });
        }
    });
    assert_eq!(unpacked.into_inner(), 1);
    assert_eq!((ground.layers(), ground.staged()), (1, 0));
}

#[test]
fn what_a_crash_left_is_removed_by_the_next_start_and_what_lives_is_not() {
    let ground = Ground::new("crash");
    let store = ground.store();
    let staging = ground.0.join("state/images/staging");
    std::fs::create_dir_all(staging.join("dead/tree/closed")).unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(staging.join("dead/tree/closed"), PermissionsExt::from_mode(0o0))
        .unwrap();
    let alive = store.stage("alive", || false, || ()).unwrap().unwrap();
    ground.store();
    assert!(!staging.join("dead").exists() && staging.join("alive").exists());
    drop(alive);
    assert_eq!(ground.staged(), 0);
}

#[test]
fn what_is_used_stays_and_what_no_image_has_goes() {
    let ground = Ground::new("gc");
    let (base, one, two) = (layer("base"), layer("one"), layer("two"));
    let with = |top: &Vec<u8>| [(base.clone(), base.clone()), (top.clone(), top.clone())];
    let mut layout = Layout::new(ground.0.join("oci"));
    layout.image("one", crate::platform::host(), &with(&one));
    layout.image("two", crate::platform::host(), &with(&two));
    let (first, held) = ground.open("oci:oci:one").unwrap();
    let (second, _) = ground.open("oci:oci:two").unwrap();
    let store = ground.store();
    let nobody = BTreeSet::new();
    assert_eq!(ground.layers(), 3, "a layer that two images have is there once");
    assert_eq!(store.remove(&first.id, &nobody).unwrap_err().kind, ErrorKind::Conflict);
    let session = BTreeSet::from([second.id.clone()]);
    assert_eq!(store.remove(&second.id, &session).unwrap_err().kind, ErrorKind::Conflict);
    assert!(store.collect(&session).unwrap().images.is_empty());
    let removed = store.collect(&nobody).unwrap();
    assert_eq!(removed.images, [second.id]);
    assert_eq!((removed.layers.len(), ground.layers()), (1, 2));
    assert!(first.layers.iter().all(|layer| layer.tree.exists()));
    drop(held);
    assert_eq!(store.remove(&first.id, &nobody).unwrap().layers.len(), 2);
    assert_eq!((ground.layers(), store.list().unwrap().len()), (0, 0));
    assert_eq!(std::fs::read_dir(ground.0.join("state/images/seen")).unwrap().count(), 0);
    // It can come again.
    assert!(ground.open("oci:oci:one").is_ok());
}

#[test]
fn an_image_that_is_used_only_as_a_part_of_another_one_can_be_removed() {
    let ground = Ground::new("shared");
    let (base, top) = (layer("base"), layer("top"));
    let packed = |layer: &Vec<u8>| (layer.clone(), layer.clone());
    let mut layout = Layout::new(ground.0.join("oci"));
    layout.image("below", crate::platform::host(), &[packed(&base)]);
    layout.image("above", crate::platform::host(), &[packed(&base), packed(&top)]);
    // The same layers, and another word on how it is run.
    let mut twin = Layout::new(ground.0.join("twin"));
    twin.config = json!({"Cmd": ["other"]});
    twin.image("v1", crate::platform::host(), &[packed(&base), packed(&top)]);
    let (below, _) = ground.open("oci:oci:below").unwrap();
    let (above, held) = ground.open("oci:oci:above").unwrap();
    let (store, nobody) = (ground.store(), BTreeSet::new());
    let removed = store.remove(&below.id, &nobody).unwrap();
    assert_eq!((removed.images, removed.layers), (vec![below.id.clone()], Vec::new()));
    assert!(above.layers.iter().all(|layer| layer.tree.exists()));
    let (twin, _) = ground.open("oci:twin").unwrap();
    assert_eq!(store.remove(&twin.id, &nobody).unwrap().layers, [""; 0]);
    // Controls: the one that is used itself, also where the other one is there and not used.
    assert_eq!(store.remove(&above.id, &nobody).unwrap_err().kind, ErrorKind::Conflict);
    drop(held);
    let (below, held) = ground.open("oci:oci:below").unwrap();
    assert_eq!(store.remove(&below.id, &nobody).unwrap_err().kind, ErrorKind::Conflict);
    assert_eq!(store.remove(&above.id, &nobody).unwrap().layers.len(), 1);
    drop(held);
    assert_eq!(store.remove(&below.id, &nobody).unwrap().layers.len(), 1);
}

#[test]
fn an_image_is_used_by_who_lies_on_it_and_not_by_who_lies_on_the_same_layers() {
    let ground = Ground::new("used");
    let (base, top) = (layer("base"), layer("top"));
    let packed = |layer: &Vec<u8>| (layer.clone(), layer.clone());
    let host = crate::platform::host();
    let mut layout = Layout::new(ground.0.join("oci"));
    layout.image("below", host, &[packed(&base)]).image(
        "above",
        host,
        &[packed(&base), packed(&top)],
    );
    layout.config = json!({"Cmd": ["other"]});
    layout.image("twin", host, &[packed(&base), packed(&top)]);
    let id = |tag: &str| ground.open(&format!("oci:oci:{tag}")).unwrap().0.id;
    let (below, twin) = (id("below"), id("twin"));
    let (above, held) = ground.open("oci:oci:above").unwrap();
    let store = ground.store();
    let used = || -> Vec<String> {
        let all = store.list().unwrap().into_iter().filter(|report| report.in_use);
        all.map(|report| report.image.id.to_string()).collect()
    };
    assert_eq!(used(), [above.id.as_str()]);
    let removed = store.collect(&BTreeSet::new()).unwrap();
    let gone: BTreeSet<_> = removed.images.into_iter().collect();
    assert_eq!((gone, removed.layers.len()), (BTreeSet::from([below, twin]), 0));
    assert!(above.layers.iter().all(|layer| layer.tree.exists()));
    drop(held);
    assert_eq!(used(), [""; 0]);
    assert_eq!(store.collect(&BTreeSet::new()).unwrap().layers.len(), 2);
    assert_eq!(std::fs::read_dir(ground.0.join("state/images/used")).unwrap().count(), 0);
}

#[test]
fn what_is_packed_in_another_way_is_said_with_the_remedy() {
    let ground = Ground::new("foreign");
    // An empty stream as bzip2 packs it, the beginning of a zip archive, and no archive at all.
    let bzip2 = b"BZh9\x17\x72\x45\x38\x50\x90\x00\x00\x00\x00";
    let zip = b"PK\x03\x04\x14\x00\x00\x00";
    for (bytes, kind, says) in [
        (&bzip2[..], ErrorKind::Unsupported, "bzip2"),
        (zip, ErrorKind::Unsupported, "zip"),
        (&[7; 1024], ErrorKind::NotAFile, "no tar file"),
    ] {
        std::fs::write(ground.0.join("image"), bytes).unwrap();
        for scheme in ["tar", "oci-archive", "docker-archive"] {
            let error = ground.open(&format!("{scheme}:image")).unwrap_err();
            assert!(error.kind == kind && error.chain().contains(says), "{scheme}: {error}");
            assert!(error.hint.is_some(), "{scheme}: {error}");
        }
    }
}

#[test]
fn a_word_that_no_program_can_be_given_is_no_image() {
    let ground = Ground::new("words");
    for (name, config) in [
        ("Cmd", json!({"Cmd": ["sh", "a\0b"]})),
        ("Env", json!({"Env": ["A=\0"]})),
        ("Entrypoint", json!({"Entrypoint": ["\0"]})),
        ("WorkingDir", json!({"WorkingDir": "/a\0"})),
        ("User", json!({"User": "a\0"})),
    ] {
        let mut layout = Layout::new(ground.0.join(name));
        layout.config = config;
        layout.image("v1", crate::platform::host(), &[(layer("base"), layer("base"))]);
        let error = ground.open(&format!("oci:{name}")).unwrap_err();
        assert!(error.kind == ErrorKind::NotAFile && error.message.contains(name), "{error}");
        assert!(error.hint.is_some(), "{error}");
    }
}

#[test]
fn a_layer_that_is_refused_leaves_nothing() {
    let ground = Ground::new("refused");
    let bad = Written::default().file("a", b"x").file("../out", b"").done();
    std::fs::write(ground.0.join("bad.tar"), bad).unwrap();
    assert_eq!(ground.open("bad.tar").unwrap_err().kind, ErrorKind::PathEscape);
    assert_eq!((ground.layers(), ground.staged()), (0, 0));
}

#[test]
fn a_store_that_others_may_write_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let ground = Ground::new("others");
    ground.store();
    let layers = ground.0.join("state/images/layers");
    std::fs::set_permissions(&layers, PermissionsExt::from_mode(0o777)).unwrap();
    assert_eq!(Store::open(&ground.0.join("state")).unwrap_err().kind, ErrorKind::Denied);
}

#[test]
fn documents_and_layers_are_bounded() {
    let ground = Ground::new("bounded");
    let mut layout = Layout::new(ground.0.join("many"));
    let one = (layer("x"), layer("x"));
    layout.image("v1", crate::platform::host(), &vec![one; crate::limits::MAX_LAYERS + 1]);
    assert_eq!(ground.open("oci:many").unwrap_err().kind, ErrorKind::TooLarge);
    let path = ground.0.join("huge");
    Layout::new(path.clone());
    let file = std::fs::File::create(path.join("index.json")).unwrap();
    file.set_len(crate::limits::MAX_DOCUMENT_BYTES + 1).unwrap();
    assert_eq!(ground.open("oci:huge").unwrap_err().kind, ErrorKind::TooLarge);
    let tight = crate::Bounds { bytes: 10, ..crate::Bounds::default() };
    let store = Store::with_bounds(&ground.0.join("state"), tight).unwrap();
    std::fs::write(ground.0.join("a.tar"), Written::default().file("a", &[0; 11]).done()).unwrap();
    let reference = Reference::parse("tar:a.tar", &ground.0).unwrap();
    let error = store.open_image(&reference, &mut Silent).unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooLarge);
    // A pipe in the place of a document keeps nobody waiting.
    std::fs::remove_file(path.join("index.json")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path.join("index.json"),
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    assert_eq!(ground.open("oci:huge").unwrap_err().kind, ErrorKind::NotFound);
}

#[test]
fn an_index_that_cannot_be_used_is_named_with_what_is_wrong_and_what_to_do() {
    use std::os::unix::fs::PermissionsExt;
    let ground = Ground::new("index");
    let path = ground.0.join("odd");
    Layout::new(path.clone());
    let index = path.join("index.json");
    let wrong = |what: &str, remedy: &str| {
        let error = ground.open("oci:odd").unwrap_err();
        let chain = error.chain();
        let place = path.to_str().unwrap();
        assert!(chain.contains(place) && chain.contains("index.json"), "{chain}");
        assert!(chain.contains(what), "{chain}");
        assert!(error.hint.as_deref().unwrap_or_default().contains(remedy), "{error:?}");
    };
    for (text, what) in [
        ("", "it is empty"),
        ("no json", "it is no JSON"),
        ("{\"manifests\":", "it is no JSON"),
        ("{\"manifests\":7}", "it is JSON and no such document"),
    ] {
        std::fs::write(&index, text).unwrap();
        wrong(what, "Write the image anew");
    }
    std::fs::remove_file(&index).unwrap();
    wrong("it has no index.json", "dir:");
    std::fs::create_dir(&index).unwrap();
    wrong("it is no regular file", "Write the image anew");
    std::fs::remove_dir(&index).unwrap();
    if !rustix::process::geteuid().is_root() {
        std::fs::write(&index, "{}").unwrap();
        std::fs::set_permissions(&index, PermissionsExt::from_mode(0o000)).unwrap();
        wrong("Permission denied", "chmod");
    }
}
