//! Where a server listens.

use cofferdam_core::{Error, ErrorKind, Result};
use std::fmt;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use tokio::net::{TcpListener, UnixListener, UnixStream};

/// The longest path of a socket that the kernel takes, in bytes.
pub const MAX_SOCKET_PATH_BYTES: usize = 107;

/// Where a server is to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A Unix socket at this path, which only its owner may use.
    Unix(PathBuf),
}

impl FromStr for Listen {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::new(ErrorKind::Usage, format!("{text:?} is no address to listen on"))
                .hint("Write ADDRESS:PORT with a number as address, or unix:/absolute/path.")
        };
        match text.strip_prefix("unix:") {
            Some(path) if path.len() > MAX_SOCKET_PATH_BYTES => {
                let what = format!("{path:?} has more than {MAX_SOCKET_PATH_BYTES} bytes");
                Err(Error::new(ErrorKind::Usage, what)
                    .hint("Use a shorter path: the kernel takes none that is longer for a socket."))
            }
            Some(path) if path.starts_with('/') => Ok(Self::Unix(PathBuf::from(path))),
            Some(_) => Err(wrong()),
            None => text.parse().map(Self::Tcp).map_err(|_| wrong()),
        }
    }
}

impl Listen {
    /// Whether only this machine reaches it.
    pub fn is_private(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().is_loopback(),
            Self::Unix(_) => true,
        }
    }

    /// Begins to listen.
    ///
    /// The file of a socket that is there already is replaced only if it is one and nobody listens.
    pub async fn bind(&self) -> Result<Bound> {
        match self {
            Self::Tcp(address) => {
                let listener = TcpListener::bind(address).await.map_err(|e| cannot(self, e))?;
                let address = listener.local_addr().map_err(|e| cannot(self, e))?;
                Ok(Bound { listener: Socket::Tcp(listener), at: Self::Tcp(address), _file: None })
            }
            Self::Unix(path) => {
                make_way(path).await?;
                let (listener, file) = bind_private(path).map_err(|e| cannot(self, e))?;
                Ok(Bound { listener: Socket::Unix(listener), at: self.clone(), _file: Some(file) })
            }
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "http://{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A server's ear. The file of a Unix socket goes with it.
#[derive(Debug)]
pub struct Bound {
    pub(crate) listener: Socket,
    pub(crate) at: Listen,
    /// Goes with the rest, and the file with it.
    _file: Option<SocketFile>,
}

/// What connections come in by.
#[derive(Debug)]
pub(crate) enum Socket {
    /// By TCP.
    Tcp(TcpListener),
    /// By a file.
    Unix(UnixListener),
}

/// The file of a socket, known by its inode: another one of its name is somebody else's.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl Bound {
    /// Where that is; the port is the one that it got.
    pub fn at(&self) -> &Listen {
        &self.at
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours = |found: &std::fs::Metadata| (found.dev(), found.ino()) == self.identity;
        if std::fs::symlink_metadata(&self.path).is_ok_and(|found| is_ours(&found)) {
            std::fs::remove_file(&self.path).ok();
        }
    }
}

/// Makes a socket that is private from its first moment: under a name of its own in a directory that
/// nobody else enters, and then moved to its place.
fn bind_private(path: &Path) -> std::io::Result<(UnixListener, SocketFile)> {
    let nest = nest_of(path);
    std::fs::create_dir(&nest)?;
    let made = || {
        std::fs::set_permissions(&nest, std::fs::Permissions::from_mode(0o700))?;
        let young = nest.join("s");
        // The path of the nest may be longer than the kernel takes for a socket.
        let opened = std::fs::File::open(&nest)?;
        let listener = UnixListener::bind(format!("/proc/self/fd/{}/s", opened.as_raw_fd()))?;
        std::fs::set_permissions(&young, std::fs::Permissions::from_mode(0o600))?;
        let found = std::fs::symlink_metadata(&young)?;
        // A link fails where a name is taken: who began to listen meanwhile keeps it.
        std::fs::hard_link(&young, path)?;
        std::fs::remove_file(&young)?;
        let file = SocketFile { path: path.to_owned(), identity: (found.dev(), found.ino()) };
        Ok((listener, file))
    };
    let made = made();
    std::fs::remove_file(nest.join("s")).ok();
    std::fs::remove_dir(&nest).ok();
    made
}

fn nest_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    PathBuf::from(name)
}

/// Removes a socket that nobody listens on any more. Anything else that is there is left.
async fn make_way(path: &Path) -> Result<()> {
    let found = match std::fs::symlink_metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(|e| cannot(&Listen::Unix(path.to_owned()), e))?,
    };
    let taken = |what: String| {
        Err(Error::new(ErrorKind::Conflict, what).hint("Use another path, or make room there."))
    };
    if !found.file_type().is_socket() {
        return taken(format!("{} is there and is no socket", path.display()));
    }
    match UnixStream::connect(path).await {
        Err(e) if e.kind() == std::io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|e| cannot(&Listen::Unix(path.to_owned()), e))
        }
        Err(e) => Err(cannot(&Listen::Unix(path.to_owned()), e)),
        Ok(_) => taken(format!("somebody listens on {} already", path.display())),
    }
}

fn cannot(listen: &Listen, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, format!("listen on {listen}"))
        .source(error)
        .hint("Choose another place with --listen, or end who has this one.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_number_with_a_port_or_a_path() {
        let check = |text: &str, is_private: bool| {
            assert_eq!(text.parse::<Listen>().unwrap().is_private(), is_private, "{text}");
        };
        check("127.0.0.1:7070", true);
        check("[::1]:0", true);
        check("0.0.0.0:80", false);
        check("[::]:80", false);
        check("192.168.1.1:80", false);
        check("unix:/run/user/1000/c.sock", true);
        for bad in ["", "7070", "localhost:7070", "unix:", "unix:c.sock", "127.0.0.1"] {
            assert!(bad.parse::<Listen>().is_err(), "{bad:?}");
        }
    }
}
