//! One repository of a registry.

use crate::challenge;
use crate::credentials::{Found, Places, look};
use crate::failure::{Failure, of_status, of_way};
use crate::http::{Http, Request, host, is_near};
use crate::limits::Limits;
use crate::login::{meet, unauthorized};
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_image::{Blob, Digest, MAX_DOCUMENT_BYTES, Registry, Remote, Stop};
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue, RANGE, WWW_AUTHENTICATE};
use reqwest::{Response, Url};
use std::future::Future;
use std::sync::Mutex;
use tokio::runtime::{Builder, Runtime};

/// Where the default registry answers.
const DEFAULT_HOST: (&str, &str) = ("docker.io", "registry-1.docker.io");

/// What is understood as an answer to a name.
const MANIFESTS: &str = "application/vnd.oci.image.index.v1+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, \
     application/vnd.oci.image.manifest.v1+json, \
     application/vnd.docker.distribution.manifest.v2+json";

/// Whom the caller trusts.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    /// Hosts, each with or without a port, that may be asked without encryption. This machine may
    /// always.
    pub insecure: Vec<String>,
}

/// One repository of a registry, and what the caller is to it. Nothing is sent before something is
/// asked.
#[derive(Debug)]
pub struct Repository {
    pub(crate) remote: Remote,
    pub(crate) http: Http,
    pub(crate) limits: Limits,
    places: Places,
    runtime: Option<Runtime>,
    said: Mutex<Said>,
}

/// What was learned while the registry was asked.
#[derive(Debug, Clone, Default)]
struct Said {
    /// Where it answers.
    base: Option<Url>,
    authorization: Option<HeaderValue>,
    found: Option<Found>,
}

impl Repository {
    /// The repository of an image.
    pub fn new(remote: &Remote, places: Places, trust: &Trust, limits: Limits) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| {
            Error::new(ErrorKind::Unavailable, "prepare requests to a registry").source(error)
        })?;
        let http = Http::new(&limits, trust)?;
        let said = Mutex::default();
        Ok(Self { remote: remote.clone(), http, limits, places, runtime: Some(runtime), said })
    }

    /// Waits for something in a thread of its own, whatever runtime the caller may be on.
    fn wait<T: Send>(&self, work: impl Future<Output = Result<T>> + Send) -> Result<T> {
        let Some(runtime) = &self.runtime else {
            return Err(Error::new(ErrorKind::Canceled, "the registry is closed"));
        };
        let ended = |_| Error::new(ErrorKind::Io, "ask the registry");
        std::thread::scope(|scope| scope.spawn(|| runtime.block_on(work)).join().map_err(ended))?
    }

    fn said(&self) -> Said {
        self.said.lock().map_or_else(|poisoned| poisoned.into_inner().clone(), |said| said.clone())
    }

    fn learn(&self, learn: impl FnOnce(&mut Said)) {
        match self.said.lock() {
            Ok(mut said) => learn(&mut said),
            Err(poisoned) => learn(&mut poisoned.into_inner()),
        }
    }

    /// Where the registry answers: encrypted, or plainly where that is allowed and it knows nothing
    /// else.
    async fn base(&self) -> Result<Url, Failure> {
        if let Some(base) = self.said().base {
            return Ok(base);
        }
        let registry = &self.remote.registry;
        let registry = if registry == DEFAULT_HOST.0 { DEFAULT_HOST.1 } else { registry };
        let url = |scheme| {
            Url::parse(&format!("{scheme}://{registry}/v2/")).map_err(|_| {
                let what = format!("{registry} is no name of a registry");
                Failure::Lasting(Error::new(ErrorKind::Usage, what).hint("Write HOST[:PORT]."))
            })
        };
        let mut base = url("https")?;
        if self.http.may_be_plain(&base)
            && let Err(encrypted) = self.http.send(Request::get(base.clone())).await
        {
            let plain = url("http")?;
            match self.http.send(Request::get(plain.clone())).await {
                Ok(answer) if matches!(answer.status().as_u16(), 200 | 401) => base = plain,
                // What went wrong with encryption says more, unless nobody is there at all.
                Ok(_) => return Err(encrypted),
                Err(failure) if is_near(&base) => return Err(nearer(encrypted, failure)),
                Err(_) => return Err(encrypted),
            }
        }
        self.learn(|said| said.base = Some(base.clone()));
        Ok(base)
    }

    /// Asks for something of the repository, and says who we are where that is wanted.
    pub(crate) async fn ask(&self, path: &str, from: Option<u64>) -> Result<Response, Failure> {
        let base = self.base().await?;
        let mut headers = HeaderMap::new();
        headers.insert(
            ACCEPT,
            match path.starts_with("manifests/") {
                true => HeaderValue::from_static(MANIFESTS),
                false => HeaderValue::from_static("*/*"),
            },
        );
        if let Some(from) = from {
            headers.insert(RANGE, from_text(from)?);
        }
        let url = base.join(&format!("{}/{path}", self.remote.repository));
        let url = url.map_err(|_| {
            Failure::Lasting(Error::new(
                ErrorKind::Usage,
                format!("{} has no address", self.remote),
            ))
        })?;
        for is_last in [false, true] {
            let authorization = self.said().authorization;
            let request =
                Request { headers: headers.clone(), authorization, ..Request::get(url.clone()) };
            let answer = self.http.send(request).await?;
            if answer.status().as_u16() != 401 || is_last || answer.url().origin() != url.origin() {
                return Ok(answer);
            }
            self.log_in(&base, &answer).await?;
        }
        Err(unauthorized(&self.remote, &self.said().found.unwrap_or_default()))
    }

    async fn log_in(&self, base: &Url, answer: &Response) -> Result<(), Failure> {
        let headers = answer.headers().get_all(WWW_AUTHENTICATE);
        let headers = headers.iter().filter_map(|header| header.to_str().ok());
        let challenge = challenge::choose(headers);
        let found = match self.said().found {
            Some(found) => found,
            None => {
                look(&self.places, &self.remote, self.limits.helper).map_err(Failure::Lasting)?
            }
        };
        self.learn(|said| said.found = Some(found.clone()));
        let Some(challenge) = challenge else { return Err(unauthorized(&self.remote, &found)) };
        let met = meet(&self.http, base, &self.remote, &challenge, &found).await?;
        self.learn(|said| said.authorization = Some(met));
        Ok(())
    }

    /// What an answer is that is not what was asked for.
    pub(crate) fn refused(&self, answer: &Response, what: &str) -> Failure {
        let place = host(answer.url());
        match answer.status().as_u16() {
            401 | 403 => unauthorized(&self.remote, &self.said().found.unwrap_or_default()),
            404 => {
                let error = Error::new(ErrorKind::NotFound, format!("{place} has no {what}"));
                let hint = "Check the name and the tag; write ./NAME if you mean a path.";
                Failure::Lasting(error.hint(hint))
            }
            _ => of_status(&place, what, answer.status()),
        }
    }

    /// A small thing as a whole. What passes by itself is tried again.
    async fn small(&self, path: &str, what: &str, most: u64) -> Result<Vec<u8>> {
        let mut attempt = 0;
        loop {
            let once = async {
                let answer = self.ask(path, None).await?;
                if answer.status().as_u16() != 200 {
                    return Err(self.refused(&answer, what));
                }
                let place = host(answer.url());
                read_bounded(answer, &place, most).await
            };
            let failure = match tokio::time::timeout(self.limits.document, once).await {
                Ok(Ok(bytes)) => return Ok(bytes),
                Ok(Err(Failure::Lasting(error))) => return Err(error),
                Ok(Err(failure @ Failure::Passing(_))) => failure,
                Err(_) => {
                    let what = format!("{} did not send {what} in time", self.remote.registry);
                    return Err(Error::new(ErrorKind::TimedOut, what).hint("Try again."));
                }
            };
            attempt += 1;
            if attempt >= self.limits.attempts || !is_worth_it(&failure) {
                return Err(failure.error());
            }
            tokio::time::sleep(self.limits.pause * (1 << attempt.min(6))).await;
        }
    }
}

impl Registry for Repository {
    fn manifest(&self, version: &str) -> Result<Vec<u8>> {
        let path = format!("manifests/{version}");
        let what = format!("image {}", self.remote);
        self.wait(self.small(&path, &what, MAX_DOCUMENT_BYTES))
    }

    fn document(&self, digest: &Digest, size: u64) -> Result<Vec<u8>> {
        let path = format!("blobs/{digest}");
        let what = format!("configuration {digest}");
        self.wait(self.small(&path, &what, size.min(MAX_DOCUMENT_BYTES)))
    }

    fn download(
        &self,
        blobs: Vec<Blob<'_>>,
        stop: &Stop,
        told: &(dyn Fn(usize, Result<()>) + Sync),
    ) {
        let numbers: Vec<usize> = blobs.iter().map(|blob| blob.number).collect();
        let all = async {
            self.download_all(blobs, stop, told).await;
            Ok(())
        };
        if let Err(error) = self.wait(all) {
            // Whoever waits for one of them must hear of it.
            for number in numbers {
                told(number, Err(Error::new(error.kind, error.message.clone())));
            }
        }
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A runtime must not end on another one, and its threads end with it.
            let _ = std::thread::spawn(move || drop(runtime)).join();
        }
    }
}

/// Reads a body as a whole, and nothing beyond a bound, whatever length it was said to have.
pub(crate) async fn read_bounded(
    mut answer: Response,
    place: &str,
    most: u64,
) -> Result<Vec<u8>, Failure> {
    let too_large = || {
        let what = format!("{place} sends more than {most} bytes for a document");
        Failure::Lasting(
            Error::new(ErrorKind::TooLarge, what).hint("Use another image or registry."),
        )
    };
    if answer.content_length().is_some_and(|length| length > most) {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    while let Some(part) = answer.chunk().await.map_err(|error| of_way(place, &error))? {
        if (bytes.len() + part.len()) as u64 > most {
            return Err(too_large());
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

/// Who is not there at all, or says nothing for as long as was waited, will be no other in a second.
fn is_worth_it(failure: &Failure) -> bool {
    let error = match failure {
        Failure::Passing(error) | Failure::Lasting(error) => error,
    };
    let is_gone = ["refused the connection", "was not resolved", "no connection to"];
    error.kind != ErrorKind::TimedOut && !is_gone.iter().any(|part| error.message.contains(part))
}

/// Of two reasons why this machine's registry did not answer, the one of a person's concern.
fn nearer(encrypted: Failure, plain: Failure) -> Failure {
    match &encrypted {
        Failure::Lasting(_) => encrypted,
        Failure::Passing(_) => plain,
    }
}

fn from_text(from: u64) -> Result<HeaderValue, Failure> {
    HeaderValue::from_str(&format!("bytes={from}-"))
        .map_err(|_| Failure::Lasting(Error::new(ErrorKind::Protocol, "ask for a part of a layer")))
}
