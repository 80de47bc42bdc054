//! Layers on their way to files: some at once, from where they stopped, verified as a whole.

use crate::failure::{Failure, of_way};
use crate::http::host;
use crate::limits::MIN_GAIN_BYTES;
use crate::repository::Repository;
use cofferdam_core::{Error, ErrorKind, Result, hexadecimal};
use cofferdam_image::{Blob, Stop};
use reqwest::Response;
use reqwest::header::CONTENT_RANGE;
use sha2::{Digest as _, Sha256};
use std::collections::VecDeque;
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often a download looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);

/// How much is read of a file at once.
const PART_BYTES: usize = 128 << 10;

/// What is shared with who waits.
type Told<'a> = &'a (dyn Fn(usize, Result<()>) + Sync);

impl Repository {
    /// Downloads three at once: more would share one line, and registries limit how many they serve.
    pub(crate) async fn download_all(&self, blobs: Vec<Blob<'_>>, stop: &Stop, told: Told<'_>) {
        let queue = Mutex::new(VecDeque::from(blobs));
        let worker = || async {
            while let Some(blob) = next(&queue) {
                let number = blob.number;
                let outcome = tokio::select! {
                    outcome = self.download_one(blob) => outcome,
                    () = stopped(stop) => Err(Error::new(ErrorKind::Canceled, "the pull was stopped")),
                };
                told(number, outcome);
            }
        };
        tokio::join!(worker(), worker(), worker());
    }

    async fn download_one(&self, blob: Blob<'_>) -> Result<()> {
        let seconds = blob.size / self.limits.bytes_per_second.max(1);
        let within = self.limits.document + Duration::from_secs(seconds);
        let what = format!("layer {} did not come in time", blob.digest);
        match tokio::time::timeout(within, Download::new(blob)?.run(self)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Error::new(ErrorKind::TimedOut, what)
                .hint("Pull again; what has come is kept, and the download goes on.")),
        }
    }
}

/// A layer on its way.
struct Download<'a> {
    blob: Blob<'a>,
    /// Of what is in the file.
    sum: Sha256,
    /// Bytes that are in the file.
    there: u64,
    /// Whether a part of it was there before, or came by another request than the rest.
    is_joined: bool,
    /// Whether the registry is asked for the rest of it.
    asks_for_rest: bool,
}

impl<'a> Download<'a> {
    fn new(mut blob: Blob<'a>) -> Result<Self> {
        let mut sum = Sha256::new();
        let mut part = vec![0; PART_BYTES];
        let mut there = 0;
        loop {
            let count = blob.file.read(&mut part).map_err(|error| not_written(&error))?;
            if count == 0 {
                break;
            }
            sum.update(part.get(..count).unwrap_or_default());
            there += count as u64;
        }
        Ok(Self { blob, sum, there, is_joined: there > 0, asks_for_rest: true })
    }

    async fn run(mut self, repository: &Repository) -> Result<()> {
        loop {
            self.fill(repository).await?;
            let found = format!("sha256:{}", hexadecimal(self.sum.clone().finalize()));
            if found == self.blob.digest.as_str() {
                return Ok(());
            }
            let was_joined = self.is_joined;
            self.start_anew()?;
            if !was_joined {
                let what = format!("the content of {} is another one, {found}", self.blob.digest);
                return Err(Error::new(ErrorKind::Denied, what)
                    .hint("Ask who runs the registry; somebody, or a broken disk, changed it."));
            }
            // What an earlier pull left may have been broken: all of it anew, once.
            self.asks_for_rest = false;
        }
    }

    /// Asks until the file is as long as it should be.
    async fn fill(&mut self, repository: &Repository) -> Result<()> {
        let limits = &repository.limits;
        let mut attempts = 0;
        while self.there < self.blob.size || self.blob.size == 0 && self.there == 0 {
            let before = self.there;
            match self.part(repository).await {
                Ok(()) if self.there == self.blob.size => return Ok(()),
                Err(Failure::Lasting(error)) => return Err(error),
                outcome => {
                    let gained = self.there.saturating_sub(before) >= MIN_GAIN_BYTES;
                    // LIMIT: where each time begins at the first byte, no gain lasts.
                    attempts = if gained && self.asks_for_rest { 0 } else { attempts + 1 };
                    if attempts >= limits.attempts {
                        return Err(outcome.err().map_or_else(|| self.short(), Failure::error));
                    }
                    self.is_joined |= self.there > 0;
                    tokio::time::sleep(limits.pause * (1 << attempts.min(6))).await;
                }
            }
        }
        Ok(())
    }

    /// One request, and as much of the answer as comes.
    async fn part(&mut self, repository: &Repository) -> Result<(), Failure> {
        if !self.asks_for_rest && self.there > 0 {
            self.start_anew().map_err(Failure::Lasting)?;
        }
        let from = (self.there > 0).then_some(self.there);
        let answer = repository.ask(&format!("blobs/{}", self.blob.digest), from).await?;
        match answer.status().as_u16() {
            200 => {
                if from.is_some() {
                    // The registry knows no parts.
                    self.asks_for_rest = false;
                    self.start_anew().map_err(Failure::Lasting)?;
                }
            }
            206 if from.is_some() && self.is_rest(&answer) => {}
            206 | 416 => {
                self.asks_for_rest = false;
                return self.start_anew().map_err(Failure::Lasting);
            }
            _ => return Err(repository.refused(&answer, &format!("layer {}", self.blob.digest))),
        }
        self.take(answer).await
    }

    /// Whether an answer is what the file lacks.
    fn is_rest(&self, answer: &Response) -> bool {
        let range = answer.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
        let lead = format!("bytes {}-", self.there);
        range.is_some_and(|range| range.starts_with(&lead))
    }

    async fn take(&mut self, mut answer: Response) -> Result<(), Failure> {
        let place = host(answer.url());
        let left = self.blob.size - self.there;
        if answer.content_length().is_some_and(|length| length > left) {
            return Err(self.long());
        }
        while let Some(part) = answer.chunk().await.map_err(|error| of_way(&place, &error))? {
            // HOSTILE: it may be longer than anybody said.
            if part.len() as u64 > self.blob.size - self.there {
                return Err(self.long());
            }
            let written = self.blob.file.write_all(&part);
            written.map_err(|error| Failure::Lasting(not_written(&error)))?;
            self.sum.update(&part);
            self.there += part.len() as u64;
            self.blob.passed.store(self.there, Ordering::Relaxed);
        }
        Ok(())
    }

    fn start_anew(&mut self) -> Result<()> {
        let file = &mut self.blob.file;
        let emptied = file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0)));
        emptied.map_err(|error| not_written(&error))?;
        (self.sum, self.there, self.is_joined) = (Sha256::new(), 0, false);
        self.blob.passed.store(0, Ordering::Relaxed);
        Ok(())
    }

    fn long(&self) -> Failure {
        let Blob { digest, size, .. } = &self.blob;
        let what = format!("layer {digest} is longer than the {size} bytes that were said");
        let hint = "Ask who runs the registry; the image is broken, or a lie.";
        Failure::Lasting(Error::new(ErrorKind::Denied, what).hint(hint))
    }

    fn short(&self) -> Error {
        let Blob { digest, size, .. } = &self.blob;
        let what =
            format!("layer {digest} has {} bytes, not the {size} that were said", self.there);
        Error::new(ErrorKind::Denied, what)
            .hint("Ask who runs the registry; the image is broken, or a lie.")
    }
}

fn next<'a>(queue: &Mutex<VecDeque<Blob<'a>>>) -> Option<Blob<'a>> {
    queue.lock().ok()?.pop_front()
}

async fn stopped(stop: &Stop) {
    while !stop.is_stopped() {
        tokio::time::sleep(LOOK).await;
    }
}

fn not_written(cause: &std::io::Error) -> Error {
    let error = Error::new(ErrorKind::Io, format!("keep a downloaded layer: {}", cause.kind()));
    if cause.kind() == std::io::ErrorKind::StorageFull {
        return error.hint("Make room on the disk, and pull again.");
    }
    error
}
