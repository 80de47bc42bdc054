//! A registry of HTTP/1.1, written by hand so that it can lie.

use cofferdam_image::Digest;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// What was asked.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Asked {
    /// The value of a header, empty where there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// What answers.
type Answer = dyn Fn(&Asked, &mut TcpStream) + Send + Sync;

/// A server that ends with the test.
pub(crate) struct Fake {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    is_over: Arc<AtomicBool>,
    accepts: Option<JoinHandle<()>>,
}

impl Fake {
    /// One that answers so.
    pub(crate) fn new(answer: impl Fn(&Asked, &mut TcpStream) + Send + Sync + 'static) -> Self {
        Self::at("127.0.0.1", answer)
    }

    /// The same at another address of this machine.
    pub(crate) fn at(
        address: &str,
        answer: impl Fn(&Asked, &mut TcpStream) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, is_over) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let answer: Arc<Answer> = Arc::new(answer);
        let (log, ends) = (asked.clone(), is_over.clone());
        let accepts = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                let (answer, log) = (answer.clone(), log.clone());
                std::thread::spawn(move || serve(stream.unwrap(), &*answer, &log));
            }
        });
        Self { address, asked, is_over, accepts: Some(accepts) }
    }

    /// One that serves images as the specification says.
    pub(crate) fn honest(images: &Images) -> Self {
        let images = images.clone();
        Self::new(move |asked, stream| images.serve(asked, stream))
    }

    /// What was asked so far, but for the first look at whether anybody is there.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        let all = self.asked.lock().unwrap().clone();
        all.into_iter().filter(|asked| asked.path != "/v2/").collect()
    }

    /// How often something below this was asked for.
    pub(crate) fn count(&self, part: &str) -> usize {
        self.asked().iter().filter(|asked| asked.path.contains(part)).count()
    }

    /// The name of an image in it.
    pub(crate) fn name(&self, rest: &str) -> String {
        format!("{}/{rest}", self.address)
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        self.accepts.take().unwrap().join().unwrap();
    }
}

fn serve(stream: TcpStream, answer: &Answer, log: &Mutex<Vec<Asked>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    // Who begins to encrypt hears nothing.
    if reader.fill_buf().is_ok_and(|first| first.first() == Some(&0x16)) {
        return;
    }
    let mut line = String::new();
    if reader.read_line(&mut line).unwrap_or(0) == 0 {
        return;
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let asked = Asked { path, headers, body: String::from_utf8(body).unwrap() };
    log.lock().unwrap().push(asked.clone());
    answer(&asked, &mut stream.try_clone().unwrap());
    let _ = stream.shutdown(std::net::Shutdown::Write);
}

/// Answers with a status, headers and a body.
pub(crate) fn reply(stream: &mut TcpStream, status: u16, headers: &[(&str, &str)], body: &[u8]) {
    let headers: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n"
    );
    // Who has heard enough may be gone.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}

/// Answers with as much as anybody takes.
pub(crate) fn endless(stream: &mut TcpStream) {
    let _ = stream.write_all(b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n");
    let part = [b"10000\r\n".as_slice(), &[b' '; 0x10000], b"\r\n"].concat();
    while stream.write_all(&part).is_ok() {}
}

/// What a registry holds.
#[derive(Clone, Default)]
pub(crate) struct Images {
    pub(crate) blobs: BTreeMap<String, Vec<u8>>,
    pub(crate) manifests: BTreeMap<String, Vec<u8>>,
}

impl Images {
    /// Keeps a blob, and says what it is.
    pub(crate) fn blob(&mut self, bytes: Vec<u8>) -> Value {
        let digest = Digest::of(&bytes).to_string();
        let size = bytes.len();
        self.blobs.insert(digest.clone(), bytes);
        json!({"mediaType": "application/octet-stream", "digest": digest, "size": size})
    }

    /// Keeps a manifest or a list under a tag and its digest, and says what it is.
    pub(crate) fn manifest(&mut self, tag: &str, value: &Value) -> Value {
        let bytes = value.to_string().into_bytes();
        let digest = Digest::of(&bytes).to_string();
        self.manifests.insert(digest.clone(), bytes.clone());
        let size = bytes.len();
        self.manifests.insert(tag.to_owned(), bytes);
        json!({"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest, "size": size})
    }

    /// Keeps an image of these layers, each one file of this content, named after its place.
    pub(crate) fn image(&mut self, tag: &str, architecture: &str, layers: &[Vec<u8>]) -> Value {
        let layers: Vec<Vec<u8>> = layers
            .iter()
            .enumerate()
            .map(|(number, file)| tar(&format!("file{number}"), file))
            .collect();
        let diff_ids: Vec<_> = layers.iter().map(|layer| Digest::of(layer).to_string()).collect();
        let layers: Vec<_> = layers.into_iter().map(|layer| self.blob(layer)).collect();
        let configuration = json!({
            "architecture": architecture, "os": "linux", "config": {"Cmd": ["sh"]},
            "rootfs": {"type": "layers", "diff_ids": diff_ids},
        });
        let config = self.blob(configuration.to_string().into_bytes());
        self.manifest(tag, &json!({"schemaVersion": 2, "config": config, "layers": layers}))
    }

    /// Answers as the specification says, parts of blobs too.
    pub(crate) fn serve(&self, asked: &Asked, stream: &mut TcpStream) {
        let (path, what) = asked.path.rsplit_once('/').unwrap();
        if asked.path == "/v2/" {
            return reply(stream, 200, &[], b"{}");
        }
        let held = if path.ends_with("manifests") { &self.manifests } else { &self.blobs };
        let Some(bytes) = held.get(what) else {
            return reply(stream, 404, &[], b"{\"errors\":[]}");
        };
        let from =
            asked.header("range").strip_prefix("bytes=").and_then(|range| range.strip_suffix('-'));
        let Some(from) = from.map(|from| from.parse::<usize>().unwrap()) else {
            return reply(stream, 200, &[], bytes);
        };
        let range = format!("bytes {from}-{}/{}", bytes.len() - 1, bytes.len());
        reply(stream, 206, &[("content-range", &range)], &bytes[from..]);
    }
}

/// A tar file with one file in it.
pub(crate) fn tar(name: &str, content: &[u8]) -> Vec<u8> {
    let mut head = [0_u8; 512];
    head[..name.len()].copy_from_slice(name.as_bytes());
    head[100..107].copy_from_slice(b"0000644");
    head[108..115].copy_from_slice(b"0000000");
    head[116..123].copy_from_slice(b"0000000");
    head[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
    head[136..147].copy_from_slice(b"00000000000");
    head[148..156].copy_from_slice(b"        ");
    head[156] = b'0';
    head[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = head.iter().map(|&byte| u32::from(byte)).sum();
    head[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    let mut tar = head.to_vec();
    tar.extend_from_slice(content);
    tar.resize(tar.len().next_multiple_of(512) + 1024, 0);
    tar
}
