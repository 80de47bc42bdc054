//! Downloads that were interrupted.

use crate::fake::{Asked, Fake, Images, reply};
use crate::ground::{Ground, architecture, bytes, content};
use cofferdam_core::ErrorKind;
use cofferdam_image::Event;
use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where a download breaks off.
const CUT: usize = 400_000;

fn images(content: &[u8]) -> Images {
    let mut images = Images::default();
    images.image("v", &architecture(), &[content.to_vec()]);
    images
}

/// Sends the head of a layer for all of it, and no more than a part.
fn cut(images: &Images, asked: &Asked, stream: &mut TcpStream) -> bool {
    let digest = asked.path.rsplit('/').next().unwrap();
    let Some(bytes) = images.blobs.get(digest).filter(|bytes| bytes.len() > CUT) else {
        return false;
    };
    let head = format!("HTTP/1.1 200 X\r\ncontent-length: {}\r\n\r\n", bytes.len());
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&bytes[..CUT]));
    true
}

/// A registry that breaks each download off until it is told otherwise.
fn breaking(images: &Images) -> (Fake, Arc<AtomicBool>) {
    let is_well = Arc::new(AtomicBool::new(false));
    let (images, well) = (images.clone(), is_well.clone());
    let fake = Fake::new(move |asked, stream| {
        if well.load(Ordering::Relaxed) {
            return images.serve(asked, stream);
        }
        // A part is refused, so that nothing but the first bytes ever comes.
        match asked.header("range") {
            "" if cut(&images, asked, stream) => {}
            "" => images.serve(asked, stream),
            _ => reply(stream, 503, &[], b""),
        }
    });
    (fake, is_well)
}

fn resumed(events: &[Event]) -> u64 {
    let resumed = events.iter().map(|event| match event {
        Event::Downloaded { resumed_bytes, .. } => *resumed_bytes,
        Event::Resolved { .. }
        | Event::Downloading { .. }
        | Event::Waiting { .. }
        | Event::Unpacking { .. }
        | Event::Unpacked { .. } => 0,
    });
    resumed.sum()
}

#[test]
fn an_interrupted_pull_goes_on_where_it_stopped() {
    let ground = Ground::new("resumed");
    let file = bytes(1, 1_000_000);
    let images = images(&file);
    let (fake, is_well) = breaking(&images);
    let error = ground.pull(&fake.name("x:v")).map(drop).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert_eq!(ground.left(), (0, 0, 1));
    is_well.store(true, Ordering::Relaxed);
    let (image, events) = ground.pull(&fake.name("x:v")).unwrap();
    assert_eq!((content(&image, "file0"), resumed(&events)), (file, CUT as u64));
    let last = fake.asked().into_iter().rfind(|asked| asked.path.contains("/blobs/")).unwrap();
    assert_eq!(last.header("range"), format!("bytes={CUT}-"));
    assert_eq!(ground.left(), (1, 1, 0));
}

#[test]
fn a_download_that_breaks_off_goes_on_within_one_pull() {
    let ground = Ground::new("goes-on");
    let file = bytes(1, 1_000_000);
    let images = images(&file);
    let served = images.clone();
    let fake = Fake::new(move |asked, stream| {
        if asked.header("range").is_empty() && cut(&served, asked, stream) {
            return;
        }
        served.serve(asked, stream);
    });
    let (image, _) = ground.pull(&fake.name("x:v")).unwrap();
    assert_eq!(content(&image, "file0"), file);
}

#[test]
fn what_was_left_is_thrown_away_where_it_is_broken_or_nobody_sends_parts() {
    for case in ["broken", "no-parts", "wrong-part", "not-satisfied"] {
        let ground = Ground::new(case);
        let file = bytes(1, 1_000_000);
        let images = images(&file);
        let (first, _) = breaking(&images);
        ground.pull(&first.name("x:v")).map(drop).unwrap_err();
        let staging = ground.path.join("images/staging");
        let partial =
            std::fs::read_dir(&staging).unwrap().next().unwrap().unwrap().path().join("packed");
        if case == "broken" {
            std::fs::write(&partial, bytes(9, CUT)).unwrap();
        }
        let served = images.clone();
        let fake = Fake::new(move |asked, stream| match (case, asked.header("range")) {
            (_, "") | ("broken", _) => served.serve(asked, stream),
            ("no-parts", _) => {
                let digest = asked.path.rsplit('/').next().unwrap();
                reply(stream, 200, &[], &served.blobs[digest]);
            }
            ("wrong-part", _) => reply(stream, 206, &[("content-range", "bytes 5-9/10")], b"12345"),
            _ => reply(stream, 416, &[], b""),
        });
        let (image, _) = ground.pull(&fake.name("x:v")).unwrap();
        assert_eq!(content(&image, "file0"), file, "{case}");
        assert_eq!(ground.left(), (1, 1, 0), "{case}");
    }
}

#[test]
fn what_an_interrupted_pull_left_stays_until_it_is_collected() {
    let ground = Ground::new("collected");
    let images = images(&bytes(1, 1_000_000));
    let (fake, _) = breaking(&images);
    ground.pull(&fake.name("x:v")).map(drop).unwrap_err();
    // Opening the store removes what a crash left, and not this.
    drop(ground.store());
    assert_eq!(ground.left(), (0, 0, 1));
    ground.collect();
    assert_eq!(ground.left(), (0, 0, 0));
}

#[test]
fn a_layer_that_was_unpacked_before_a_pull_broke_off_is_not_kept_packed_beside_it() {
    let ground = Ground::new("unpacked");
    let mut images = Images::default();
    images.image("v", &architecture(), &[bytes(1, 1000), bytes(2, 1_000_000)]);
    let (fake, is_well) = breaking(&images);
    ground.pull(&fake.name("x:v")).map(drop).unwrap_err();
    // The small one is there both ways, and a pull that goes on asks for the other one alone.
    assert_eq!(ground.left(), (1, 0, 2));
    let staging = ground.path.join("images/staging");
    let packed: Vec<_> =
        std::fs::read_dir(&staging).unwrap().map(|entry| entry.unwrap().path()).collect();
    is_well.store(true, Ordering::Relaxed);
    ground.pull(&fake.name("x:v")).unwrap();
    assert_eq!(ground.left(), (2, 1, 0));
    // Nor where all was there already, as where a pull was killed at its very end.
    let other = staging.join(format!("fetch-{}", "0".repeat(64)));
    for path in packed.iter().chain([&other]) {
        std::fs::create_dir(path).unwrap();
        std::fs::write(path.join("packed"), "x").unwrap();
    }
    ground.pull(&fake.name("x:v")).unwrap();
    // The control: what another pull may go on with stays.
    assert!(ground.left() == (2, 1, 1) && other.exists());
}
