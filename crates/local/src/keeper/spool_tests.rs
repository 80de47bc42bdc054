use super::*;
use crate::test_directory::TestDirectory;
use cofferdam_core::secret::SecretValue;
use rustix::fs::{CWD, Mode, OFlags};
use std::os::unix::fs::MetadataExt;

struct Stage {
    directory: TestDirectory,
    pipe: OwnedFd,
    spool: Spool,
}

fn open(directory: &TestDirectory, name: &str) -> OwnedFd {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, directory.path().join(name), flags, Mode::RUSR | Mode::WUSR).unwrap()
}

impl Stage {
    fn new(name: &str, kept: u64, way: Way) -> Self {
        let directory = TestDirectory::new(name);
        let (reader, pipe) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let folder = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(CWD, directory.path(), folder, Mode::empty()).unwrap();
        let name = "ledger".to_owned();
        let folder = Arc::new(folder);
        let sink = Sink::new(Arc::clone(&folder), "out".to_owned(), OFlags::TRUNC);
        let ledger = Ledger { file: Sink::new(folder, name, OFlags::empty()), entry: 1 };
        let spool = Spool::new(reader, sink, way, kept, ledger).unwrap();
        Self { directory, pipe, spool }
    }

    /// Writes so many bytes, each telling its offset.
    fn write(&mut self, count: u64) {
        let from = self.spool.written;
        for start in (from..from + count).step_by(4096) {
            let end = (start + 4096).min(from + count);
            let bytes: Vec<u8> = (start..end).map(told).collect();
            assert_eq!(rustix::io::write(&self.pipe, &bytes), Ok(bytes.len()));
            assert_eq!(self.spool.work(), Moved::Waits);
        }
    }

    fn read(&self, offset: u64, most: usize) -> Chunk {
        let (file, ledger) =
            (open(&self.directory, "out"), || Some(open(&self.directory, "ledger")));
        let chunk = read(Some(&file), (ledger, 1), offset, most).unwrap();
        let told = (chunk.offset..).map(told).take(chunk.bytes.len());
        assert!(chunk.bytes.iter().copied().eq(told), "bytes must be those of their offset");
        chunk
    }
}

/// Never 0, which is what a hole reads as.
fn told(offset: u64) -> u8 {
    u8::try_from(offset % 251).unwrap() + 1
}

#[test]
fn all_of_a_short_stream_is_kept() {
    for way in [Way::Splice, Way::Copy] {
        let mut stage = Stage::new("spool-short", 1 << 20, way);
        stage.write(10_000);
        assert_eq!(stage.spool.spooled(), Spooled { written: 10_000, dropped: 0 });
        assert_eq!(stage.read(0, 20_000).bytes.len(), 10_000);
        assert_eq!(stage.read(9_999, 20_000).bytes.len(), 1);
        assert_eq!(stage.read(10_000, 9), Chunk { offset: 10_000, bytes: Vec::new() });
        drop(stage.pipe);
        assert_eq!(stage.spool.work(), Moved::Done);
    }
}

#[test]
fn the_oldest_bytes_of_a_long_stream_are_dropped_and_offsets_stay_true() {
    let mut stage = Stage::new("spool-long", MIN_KEPT_BYTES, Way::Splice);
    stage.write(1_000_000);
    let Spooled { written, dropped } = stage.spool.spooled();
    assert_eq!(written, 1_000_000);
    assert!(written - dropped <= MIN_KEPT_BYTES && written - dropped >= MIN_KEPT_BYTES / 2);
    let chunk = stage.read(0, 1 << 20);
    assert_eq!((chunk.offset, chunk.bytes.len() as u64), (dropped, written - dropped));
    assert_eq!(stage.read(dropped + 5, 7).offset, dropped + 5);
    let file = std::fs::metadata(stage.directory.path().join("out")).unwrap();
    assert_eq!(file.len(), 1_000_000);
    assert!(file.blocks() * 512 <= 2 * MIN_KEPT_BYTES, "{} blocks", file.blocks());
}

#[test]
fn where_nothing_can_be_dropped_the_newest_bytes_are_and_a_follower_still_comes_to_the_end() {
    let mut stage = Stage::new("spool-cut", MIN_KEPT_BYTES, Way::Splice);
    stage.write(4096);
    // A file that takes no more, as on a full disk.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let path = stage.directory.path().join("out");
    stage.spool.file.file = Some(rustix::fs::openat(CWD, path, flags, Mode::empty()).unwrap());
    stage.write(100_000);
    assert_eq!(stage.spool.spooled(), Spooled { written: 104_096, dropped: 100_000 });
    assert_eq!(stage.read(0, 1 << 20).bytes.len(), 4096);
    assert_eq!(stage.read(4096, 9), Chunk { offset: 104_096, bytes: Vec::new() });
}

#[test]
fn nothing_is_made_for_a_stream_that_stays_empty_and_what_found_no_file_is_told() {
    let mut stage = Stage::new("spool-empty", MIN_KEPT_BYTES, Way::Splice);
    assert_eq!(stage.spool.work(), Moved::Waits);
    let path = stage.directory.path().join("out");
    assert!(!path.exists());
    let none = |stage: &Stage| {
        let ledger = stage.directory.path().join("ledger");
        let ledger = || rustix::fs::openat(CWD, &ledger, OFlags::RDONLY, Mode::empty()).ok();
        read(None, (ledger, 1), 0, 9).unwrap()
    };
    assert_eq!(none(&stage), Chunk { offset: 0, bytes: Vec::new() });
    // A name that takes no file stands for a disk that does not.
    std::fs::create_dir(&path).unwrap();
    stage.write(5000);
    assert_eq!(stage.spool.spooled(), Spooled { written: 5000, dropped: 5000 });
    assert_eq!(none(&stage), Chunk { offset: 5000, bytes: Vec::new() });
}

#[test]
fn a_stream_that_is_cut_off_tells_no_beginning_of_a_value() {
    let (value, begun) = (b"a-long-secret-value".to_vec(), b"a-long-secret-val");
    let mask = Mask::new([&SecretValue::new(value).unwrap()]).unwrap();
    // The control: where the command itself wrote no more, it was no value.
    for (is_cut, kept) in [(true, &b""[..]), (false, begun)] {
        let mut stage = Stage::new("spool-cut-off", 1 << 20, Way::Splice);
        stage.spool.cover(&mask);
        assert_eq!(rustix::io::write(&stage.pipe, begun), Ok(begun.len()));
        assert_eq!(stage.spool.work(), Moved::Waits);
        if is_cut {
            stage.spool.close();
        }
        stage.spool.finish();
        let (file, none) = (open(&stage.directory, "out"), || None);
        assert_eq!(read(Some(&file), (none, 1), 0, 99).unwrap().bytes, kept, "{is_cut}");
    }
}
