use super::*;
use proptest::prelude::*;

/// Writes tar files, right ones and wrong ones.
#[derive(Default)]
pub(crate) struct Written(Vec<u8>);

impl Written {
    /// One header and its content, as they are told.
    pub(crate) fn raw(mut self, kind: u8, path: &str, target: &str, content: &[u8]) -> Self {
        self.header(kind, path, target, (0o644, 0, content.len() as u64));
        self.content(content);
        self
    }

    pub(crate) fn file(self, path: &str, content: &[u8]) -> Self {
        self.raw(b'0', path, "", content)
    }

    pub(crate) fn program(mut self, path: &str, content: &[u8], mode: u32) -> Self {
        self.header(b'0', path, "", (mode, 0, content.len() as u64));
        self.content(content);
        self
    }

    pub(crate) fn directory(mut self, path: &str, mode: u32) -> Self {
        self.header(b'5', path, "", (mode, 0, 0));
        self
    }

    pub(crate) fn symlink(self, path: &str, target: &str) -> Self {
        self.raw(b'2', path, target, b"")
    }

    pub(crate) fn hard_link(self, path: &str, target: &str) -> Self {
        self.raw(b'1', path, target, b"")
    }

    pub(crate) fn owned(mut self, path: &str, uid: u64) -> Self {
        self.header(b'0', path, "", (0o600, uid, 0));
        self
    }

    /// A header that claims a size that nothing stands behind.
    pub(crate) fn claim(mut self, kind: u8, path: &str, size: u64) -> Self {
        self.header(kind, path, "", (0o644, 0, size));
        self
    }

    pub(crate) fn pax(self, records: &[(&str, &str)]) -> Self {
        let mut text = String::new();
        for (key, value) in records {
            let rest = key.len() + value.len() + 3;
            let length =
                (1..8).map(|digits| rest + digits).find(|l| l.to_string().len() + rest == *l);
            text = format!("{text}{} {key}={value}\n", length.unwrap());
        }
        self.raw(b'x', "pax", "", text.as_bytes())
    }

    pub(crate) fn done(mut self) -> Vec<u8> {
        self.0.extend([0; 2 * BLOCK]);
        self.0
    }

    fn header(&mut self, kind: u8, path: &str, target: &str, numbers: (u32, u64, u64)) {
        let (mode, uid, size) = numbers;
        let mut block = [0; BLOCK];
        block[..path.len()].copy_from_slice(path.as_bytes());
        let mut write = |start: usize, text: String| {
            block[start..start + text.len()].copy_from_slice(text.as_bytes());
        };
        write(100, format!("{mode:07o}\0"));
        write(108, format!("{uid:07o}\0"));
        write(116, format!("{uid:07o}\0"));
        write(124, format!("{size:011o}\0"));
        write(136, format!("{:011o}\0", 1_700_000_000));
        write(257, "ustar\x0000".to_owned());
        block[156] = kind;
        block[157..157 + target.len()].copy_from_slice(target.as_bytes());
        block[148..156].fill(b' ');
        let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        self.0.extend(block);
    }

    fn content(&mut self, content: &[u8]) {
        self.0.extend(content);
        self.0.resize(self.0.len().next_multiple_of(BLOCK), 0);
    }
}

fn all(bytes: &[u8]) -> io::Result<Vec<(Entry, Vec<u8>)>> {
    let mut entries = Entries::new(bytes);
    let mut all = Vec::new();
    while let Some(entry) = entries.next_entry()? {
        let mut content = Vec::new();
        entries.read_to_end(&mut content)?;
        all.push((entry, content));
    }
    Ok(all)
}

#[test]
fn entries_come_as_they_were_written() {
    let long = "d/".repeat(100) + "name";
    let bytes = Written::default()
        .directory("etc/", 0o755)
        .file("etc/hosts", b"127.0.0.1 localhost\n")
        .symlink("etc/mtab", "../proc/mounts")
        .pax(&[("path", &long), ("mtime", "5.25"), ("uid", "70000"), ("SCHILY.xattr.a", "b")])
        .file("short", b"x")
        .raw(b'L', "././@LongLink", "", format!("{long}\0").as_bytes())
        .hard_link("short", "etc/hosts")
        .done();
    let all = all(&bytes).unwrap();
    let paths: Vec<_> = all.iter().map(|(entry, _)| text(&entry.path)).collect();
    let long_shown = text(long.as_bytes());
    assert_eq!(paths, ["\"etc/\"", "\"etc/hosts\"", "\"etc/mtab\"", &long_shown, &long_shown]);
    let kinds: Vec<_> = all.iter().map(|(entry, _)| entry.kind).collect();
    assert_eq!(kinds, [Kind::Directory, Kind::File, Kind::Symlink, Kind::File, Kind::HardLink]);
    assert_eq!(all[1].1, b"127.0.0.1 localhost\n");
    assert_eq!(all[2].0.target, b"../proc/mounts");
    let said = &all[3].0;
    assert_eq!((said.mtime, said.uid, said.attributes), ((5, 250_000_000), 70_000, 1));
}

#[test]
fn content_that_is_not_read_is_passed_over() {
    let bytes = Written::default().file("a", &[7; 3000]).file("b", b"b").done();
    let mut entries = Entries::new(&bytes[..]);
    entries.next_entry().unwrap();
    let mut some = [0; 10];
    entries.read_exact(&mut some).unwrap();
    assert_eq!(entries.next_entry().unwrap().unwrap().path, b"b");
    assert!(entries.next_entry().unwrap().is_none());
}

#[test]
fn what_is_not_understood_is_an_error() {
    let written = Written::default;
    let broken_sum = {
        let mut bytes = written().file("a", b"").done();
        bytes[0] = b'b';
        bytes
    };
    for (what, bytes) in [
        ("a wrong checksum", broken_sum),
        ("an unknown kind", written().raw(b'Z', "a", "", b"").done()),
        ("holes", written().pax(&[("GNU.sparse.major", "1")]).file("a", b"").done()),
        ("holes of the old sort", written().raw(b'S', "a", "", b"").done()),
        ("a huge extended header", written().claim(b'x', "pax", 1 << 40).done()),
        ("a huge long name", written().claim(b'L', "name", 1 << 40).done()),
        (
            "a path that is too long",
            written().pax(&[("path", &"a/".repeat(3000))]).file("a", b"").done(),
        ),
        ("a path with a zero byte", written().pax(&[("path", "a\0b")]).file("a", b"").done()),
        (
            "a record without an end",
            written().raw(b'x', "pax", "", b"99 path=a\n").file("a", b"").done(),
        ),
        (
            "a record of no length",
            written().raw(b'x', "pax", "", b"0 path=a\n").file("a", b"").done(),
        ),
        ("content that ends early", written().claim(b'0', "a", 1 << 20).done()),
        ("no tar at all", vec![b'x'; 4096]),
    ] {
        assert!(all(&bytes).is_err(), "{what}");
    }
}

#[test]
fn numbers_are_of_eight_digits_or_bytes() {
    assert_eq!(number(b"0000644\0").unwrap(), 0o644);
    assert_eq!(number(b"  17 \0").unwrap(), 0o17);
    assert_eq!(number(b"\x80\0\0\0\0\0\x01\x00").unwrap(), 256);
    for bad in
        [&b"8"[..], b"-1", b"\xff\xff\xff\xff\xff\xff\xff\xff", b"\x80\x01\0\0\0\0\0\0\0\0\0\0"]
    {
        assert!(number(bad).is_err(), "{bad:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_end_in_entries_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..4096)) {
        let _ = all(&bytes);
    }

    #[test]
    fn a_changed_byte_of_an_archive_ends_in_entries_or_an_error(place in 0..4000_usize, byte: u8) {
        let mut bytes = Written::default().pax(&[("path", "long")]).file("a", &[1; 600]).done();
        let place = place % bytes.len();
        bytes[place] = byte;
        let _ = all(&bytes);
    }
}
