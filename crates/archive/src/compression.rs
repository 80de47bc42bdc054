//! What a stream was packed with, found by its first bytes.

use lzma_rust2::XzReader;
use std::io::{self, BufRead, BufReader, Read};

/// What a stream packed by xz may need to be unpacked, in KiB. Its strongest setting needs 65 MiB.
const XZ_MEMORY_KIB: u32 = 100 << 10;

/// How a stream is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// Not at all.
    Plain,
    /// By gzip.
    Gzip,
    /// By Zstandard.
    Zstd,
    /// By xz.
    Xz,
}

impl Packing {
    /// By the first bytes.
    pub fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            // A frame that is skipped may lead.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            _ => Self::Plain,
        }
    }
}

/// What to do about a stream that is packed otherwise.
pub const REPACK: &str = "Unpack it, or pack it by gzip, xz or Zstandard.";

/// Fails, with [`io::ErrorKind::Unsupported`], where the first bytes are those of what is packed in a way
/// that is not read here.
pub fn refuse_others(head: &[u8]) -> io::Result<()> {
    let name = match head {
        // The first block, or the end where there is none.
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, ..]
        | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, 0x45, ..] => "bzip2",
        [b'L', b'Z', b'I', b'P', 0 | 1, ..] => "lzip",
        [0x04, 0x22, 0x4d, 0x18, ..] => "lz4",
        [0x1f, 0x9d, ..] => "compress",
        [0x5d, 0, 0, ..] => "lzma",
        [0x89, b'L', b'Z', b'O', ..] => "lzop",
        [b'P', b'K', 3, 4, ..] => "zip",
        [b'7', b'z', 0xbc, 0xaf, ..] => "7z",
        [b'R', b'a', b'r', b'!', 0x1a, ..] => "rar",
        _ => return Ok(()),
    };
    let what = format!("it is packed by {name}, which is not unpacked here");
    Err(io::Error::new(io::ErrorKind::Unsupported, what))
}

/// The stream unpacked. One that is not packed passes as it is, and one that is packed in a way that is not
/// read here fails as [`refuse_others`] does.
pub fn unpacked<R: Read>(packed: R) -> io::Result<Unpacked<R>> {
    let mut packed = BufReader::with_capacity(128 << 10, packed);
    refuse_others(packed.fill_buf()?)?;
    Ok(Unpacked(match Packing::of(packed.fill_buf()?) {
        Packing::Plain => Stream::Plain(packed),
        // Several streams after one another count as one.
        Packing::Gzip => Stream::Gzip(Box::new(flate2::bufread::MultiGzDecoder::new(packed))),
        // LIMIT: a stream that needs more memory is refused there, before it is taken.
        Packing::Xz => Stream::Xz(Box::new(XzReader::new_mem_limit(packed, true, XZ_MEMORY_KIB))),
        Packing::Zstd => Stream::Zstd(Box::new(Frames { source: Some(packed), frame: None })),
    }))
}

/// A stream that is unpacked while it is read.
pub struct Unpacked<R: Read>(Stream<BufReader<R>>);

enum Stream<R: BufRead> {
    Plain(R),
    Gzip(Box<flate2::bufread::MultiGzDecoder<R>>),
    Xz(Box<XzReader<R>>),
    Zstd(Box<Frames<R>>),
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Stream::Plain(stream) => stream.read(buffer),
            Stream::Gzip(stream) => stream.read(buffer),
            Stream::Xz(stream) => stream.read(buffer),
            Stream::Zstd(stream) => stream.read(buffer),
        }
    }
}

type ZstdFrame<R> = ruzstd::decoding::StreamingDecoder<R, ruzstd::decoding::FrameDecoder>;

/// All frames of Zstandard after one another.
struct Frames<R: BufRead> {
    source: Option<R>,
    frame: Option<ZstdFrame<R>>,
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                let count = frame.read(buffer)?;
                if count > 0 || buffer.is_empty() {
                    return Ok(count);
                }
                self.source = self.frame.take().map(ZstdFrame::into_inner);
            }
            let Some(mut source) = self.source.take() else { return Ok(0) };
            if source.fill_buf()?.is_empty() {
                return Ok(0);
            }
            if skip(&mut source)? {
                self.source = Some(source);
                continue;
            }
            // LIMIT: a frame that needs a window of more than 100 MiB is refused there.
            self.frame = Some(ZstdFrame::new(source).map_err(io::Error::other)?);
        }
    }
}

/// Passes over a frame that holds no data, if one is next.
fn skip(source: &mut impl BufRead) -> io::Result<bool> {
    // A frame's head is shorter than any buffer, but a buffer may end in it.
    let is_skipped = matches!(source.fill_buf()?, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]);
    if !is_skipped {
        return Ok(false);
    }
    let mut head = [0; 8];
    source.read_exact(&mut head)?;
    let [_, _, _, _, a, b, c, d] = head;
    let length = u64::from(u32::from_le_bytes([a, b, c, d]));
    match io::copy(&mut source.take(length), &mut io::sink())? {
        skipped if skipped == length => Ok(true),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        ruzstd::encoding::compress_to_vec(bytes, level)
    }

    /// `one ` as xz packs it, in hexadecimal.
    const ONE: &str = "fd377a585a000004e6d6b4460200210116000000742fe5a30100036f6e6520005a8c83a33135ef7e\
        00011c046f2c9cc11fb6f37d010000000004595a";
    /// `two`, with a SHA-256.
    const TWO: &str = "fd377a585a00000ae1fb0ca10200210116000000742fe5a301000274776f00003fc4ccfe745870e2\
        c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f300013303a181e44d189b4b9a01000000\
        000a595a";
    /// 100 000 bytes of 7.
    const SEVENS: &str = "fd377a585a000004e6d6b4460200210116000000742fe5a3e1869f00535d0003effbbffea3b15ee5\
        f83fb2aa2655f868704170150f8dfd1e4c1b8a42b719f4691871ae66238a8a4d2fa30dd97fa6e38c\
        231153e05918c5758ae277f8b6947f0c6ac0de744964e2e95c53b204d6b1f59700000000bae89d46\
        798e172800016fa08d06000090e46e51b1c467fb020000000004595a";
    /// `mid` by the strongest setting, which has a dictionary of 64 MiB.
    const STRONGEST: &str = "fd377a585a0000016922de36020021011c00000010cf58cc0100026d69640000cef4ae4100011703\
        07600cbc9042990d010000000001595a";
    /// `big` with a dictionary of 256 MiB.
    const GREEDY: &str = "fd377a585a0000016922de3602002101200000000988a576010002626967000049e2fbd300011703\
        07600cbc9042990d010000000001595a";

    fn bytes(hexadecimal: &str) -> Vec<u8> {
        let digit = |at: usize| u8::from_str_radix(&hexadecimal[at..at + 2], 16).unwrap();
        (0..hexadecimal.len()).step_by(2).map(digit).collect()
    }

    fn read(packed: &[u8]) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        unpacked(packed)?.read_to_end(&mut all).map(|_| all)
    }

    #[test]
    fn what_is_packed_is_found_by_its_first_bytes() {
        let text: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        for packed in [text.clone(), gzip(&text), zstd(&text)] {
            assert!(read(&packed).unwrap() == text);
        }
        assert!(read(&bytes(SEVENS)).unwrap() == vec![7; 100_000]);
    }

    #[test]
    fn what_is_packed_in_another_way_is_named() {
        for (head, name) in [
            (&b"BZh91AY&SY"[..], "bzip2"),
            (b"BZh9\x17\x72\x45\x38\x50\x90", "bzip2"),
            (b"LZIP\x01", "lzip"),
            (b"PK\x03\x04", "zip"),
        ] {
            let error = read(head).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::Unsupported);
            assert!(error.to_string().contains(name), "{error}");
        }
        // The control: names of files, which a tar archive begins with.
        for name in [&b"BZh9\0"[..], b"LZIP", b"PK\0\0", b"7zip"] {
            assert_eq!(read(name).unwrap(), name);
        }
    }

    #[test]
    fn parts_after_one_another_count_as_one() {
        let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"xyz"].concat();
        let frames = [skipped.clone(), zstd(b"one "), skipped, zstd(b"two")].concat();
        assert_eq!(read(&frames).unwrap(), b"one two");
        assert_eq!(read(&[gzip(b"one "), gzip(b"two")].concat()).unwrap(), b"one two");
        assert_eq!(read(&[bytes(ONE), vec![0; 8], bytes(TWO)].concat()).unwrap(), b"one two");
    }

    #[test]
    fn what_is_cut_short_or_broken_is_an_error() {
        let text = vec![7; 100_000];
        for mut packed in [gzip(&text), zstd(&text), bytes(SEVENS)] {
            packed.truncate(packed.len() - 6);
            assert!(read(&packed).is_err());
        }
        assert!(read(&[0x28, 0xb5, 0x2f, 0xfd, 0xff, 0xff]).is_err());
        assert!(read(&[0x50, 0x2a, 0x4d, 0x18, 9, 0, 0, 0, 1]).is_err());
    }

    #[test]
    fn xz_takes_no_more_memory_than_its_strongest_setting_needs() {
        assert_eq!(read(&bytes(STRONGEST)).unwrap(), b"mid");
        assert_eq!(read(&bytes(GREEDY)).unwrap_err().kind(), io::ErrorKind::OutOfMemory);
    }

    /// The release build aborts on a panic, so no byte may cause one.
    #[test]
    fn any_changed_byte_of_xz_is_an_error_or_the_same() {
        for (packed, text) in [(ONE, &b"one "[..]), (TWO, b"two"), (SEVENS, &[7; 100_000])] {
            let packed = bytes(packed);
            for at in 6..packed.len() {
                for change in [1, 0x80, 0xff] {
                    let mut changed = packed.clone();
                    changed[at] ^= change;
                    if let Ok(read) = read(&changed) {
                        assert!(read == text, "{at}");
                    }
                }
            }
        }
    }
}
