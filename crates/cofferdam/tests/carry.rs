//! Many changes at once in a real sandbox: whole or not at all, whatever commands do meanwhile.
#![expect(clippy::unwrap_used, reason = "the functions beside the tests are of tests too")]

use cofferdam::files::{Before, Content, Load, Step};
use cofferdam::{Ending, Error, ErrorKind, Files, Sandbox, own_backend};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How many files one carry changes.
const FILES: usize = 40;
/// How long workers are killed at most.
const RACE: Duration = Duration::from_secs(60);

struct Place {
    path: PathBuf,
    /// Ended before its workspace is removed.
    sandbox: Option<Sandbox>,
    files: Files,
}

impl Place {
    async fn new(name: &str) -> Self {
        let mark = format!("cofferdam-carry-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(mark);
        std::fs::create_dir_all(path.join("workspace")).unwrap();
        let backend = Arc::new(own_backend(path.join("state")));
        let builder = Sandbox::builder().workspace(path.join("workspace")).backend(backend);
        let sandbox = builder.create().await.unwrap();
        let files = sandbox.files().await.unwrap();
        for at in 0..FILES {
            files.write(format!("d{}/f{at}", at % 4), b"0").await.unwrap();
        }
        Self { path, sandbox: Some(sandbox), files }
    }

    async fn end(mut self) {
        self.sandbox.take().unwrap().destroy().await.unwrap();
    }

    async fn inside(&self, line: &str) -> String {
        let output = self.sandbox.as_ref().unwrap().exec(["sh", "-c", line]).await.unwrap();
        assert_eq!(output.ending, Ending::Exited(0), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Gives every file this text, if all have that one.
    async fn turn(&self, from: &str, to: &str) -> Result<u64, Error> {
        let mut load = Vec::new();
        for at in 0..FILES {
            let path = format!("d{}/f{at}", at % 4);
            let sha256 = sha256(from);
            let is = Before::File { sha256, mode: 0o644 };
            load.push(Step::Expect { path: path.as_str().into(), is }.into());
        }
        for at in 0..FILES {
            let path = format!("d{}/f{at}", at % 4).as_str().into();
            let step = Step::File { path, mode: 0o644, bytes: 0 };
            load.push(Load { step, content: Content::Bytes(to.as_bytes().into()) });
        }
        self.files.carry(load).await
    }

    /// The one text that all files have.
    async fn text(&self) -> String {
        let mut texts = Vec::new();
        for at in 0..FILES {
            let path = self.path.join(format!("workspace/d{}/f{at}", at % 4));
            texts.push(std::fs::read_to_string(path).unwrap());
        }
        texts.dedup();
        assert_eq!(texts.len(), 1, "files are of different states: {texts:?}");
        texts.remove(0)
    }

    fn leftovers(&self) -> usize {
        let names = std::fs::read_dir(self.path.join("workspace")).unwrap().flatten();
        names.filter(|e| e.file_name().to_string_lossy().starts_with(".cofferdam-")).count()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Of the few texts that are used here, as everybody else computes it.
fn sha256(text: &str) -> String {
    let mut child = std::process::Command::new("sha256sum")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap()[..64].to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_killed_leaves_all_or_nothing() {
    let place = Arc::new(Place::new("killed").await);
    let stop = Arc::new(AtomicBool::new(false));
    let (killing, stopped) = (Arc::clone(&place), Arc::clone(&stop));
    let killer = tokio::spawn(async move {
        for round in 0_u32.. {
            if stopped.load(Ordering::Relaxed) {
                return;
            }
            // At every moment of a carry, and now and then not at all.
            let pause = [0, 3, 10, 30, 100, 1000].get(round as usize % 6).copied().unwrap_or(0);
            tokio::time::sleep(Duration::from_millis(pause)).await;
            // Everything but process 1 and the shell itself.
            let sandbox = killing.sandbox.as_ref().unwrap();
            let _ = sandbox.exec(["sh", "-c", "kill -9 -1; :"]).await;
        }
    });
    let (mut now, mut done, mut undone, mut unknown) = (0_u32, 0, 0, 0);
    let end = Instant::now() + RACE;
    while (done < 3 || undone + unknown < 5) && Instant::now() < end {
        match place.turn(&now.to_string(), &(now + 1).to_string()).await {
            Ok(_) => {
                done += 1;
                now += 1;
            }
            Err(error) if error.message.ends_with("nothing was changed") => undone += 1,
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Unavailable, "{error:?}");
                unknown += 1;
                // Whoever comes next puts it right, if it is let.
                stop_for(&place, now).await;
                now = place.text().await.parse().unwrap();
            }
        }
    }
    stop.store(true, Ordering::Relaxed);
    killer.await.unwrap();
    // One that is not disturbed clears up.
    let text = match place.turn(&now.to_string(), "last").await {
        Ok(_) => "last".to_owned(),
        Err(error) => panic!("{error:?}"),
    };
    assert_eq!(place.text().await, text);
    assert_eq!(place.leftovers(), 0);
    assert!(done > 0 && undone + unknown > 0, "{done} done, {undone} undone, {unknown} unknown");
    Arc::into_inner(place).unwrap().end().await;
}

/// Tries until somebody has put right what is left of state `now`.
async fn stop_for(place: &Place, now: u32) {
    // Somebody kills whoever tries, and the machine may be busy.
    let end = Instant::now() + Duration::from_secs(60);
    while place.leftovers() > 0 {
        assert!(Instant::now() < end, "what is left of {now} is never put right");
        let is = Before::Nothing;
        let _ = place.files.carry(vec![Step::Expect { path: "none".into(), is }.into()]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_gives_up_leaves_all_or_nothing() {
    let place = Place::new("given-up").await;
    let (mut now, mut done, mut none) = (0_u32, 0, 0);
    for round in 0..40_u64 {
        let next = (now + 1).to_string();
        let patience = Duration::from_micros(round * 700);
        let _ = tokio::time::timeout(patience, place.turn(&now.to_string(), &next)).await;
        let end = Instant::now() + Duration::from_secs(20);
        while place.leftovers() > 0 {
            assert!(Instant::now() < end, "a worker does not end");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let text: u32 = place.text().await.parse().unwrap();
        assert!(text == now || text == now + 1);
        done += u32::from(text != now);
        none += u32::from(text == now);
        now = text;
    }
    assert!(done > 0 && none > 0, "{done} done, {none} not");
    place.end().await;
}

#[tokio::test]
async fn a_full_disk_and_a_closed_directory_change_nothing() {
    let place = Place::new("full").await;
    place.inside("chmod 555 d3").await;
    let refused = place.turn("0", "1").await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Denied, "{refused:?}");
    assert_eq!((place.text().await.as_str(), place.leftovers()), ("0", 0));
    place.inside("chmod 755 d3").await;
    // A file that cannot be so large, for the rules of the sandbox or of the worker.
    let huge = place.path.join("huge");
    std::fs::File::create(&huge).unwrap().set_len(3 << 30).unwrap();
    let open = Box::new(move || std::fs::File::open(huge));
    let step = Step::File { path: "huge".into(), mode: 0o644, bytes: 0 };
    let load = vec![
        Step::Expect { path: "huge".into(), is: Before::Nothing }.into(),
        Load { step, content: Content::Later { open, bytes: 3 << 30 } },
    ];
    let refused = place.files.carry(load).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::TooLarge, "{refused:?}");
    assert_eq!(place.leftovers(), 0);
    // The control.
    place.turn("0", "1").await.unwrap();
    assert_eq!(place.text().await, "1");
    place.end().await;
}
