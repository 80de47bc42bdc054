//! Files over HTTP, through the real server.

use crate::http_client::{Served, answer, event_lines};
use crate::place::{Place, SOON, everyone, until};
use serde_json::json;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::time::Duration;

/// Of FIPS 180-4: the SHA-256 of "abc", in hexadecimal and in base64.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const ABC_DIGEST: &str = "sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=:";
const FILES: &str = "/v1/sandboxes/s/files";
/// How much is sent and read to see what a server holds of it.
const LARGE_BYTES: usize = 128 << 20;
/// How much memory a server may take for that.
const MOST_MEMORY: u64 = 48 << 20;

fn served(place: &Place) -> Served {
    let server = Served::new(place);
    let workspace = place.workspace.to_str().unwrap();
    let wish = json!({"name": "s", "workspace": workspace, "profile": "no-network"});
    server.say("POST /v1/sandboxes", &wish).is(201);
    server
}

#[test]
fn a_file_is_written_whole_and_its_hash_is_told_and_compared() {
    everyone(|place| {
        let server = served(place);
        let put = format!("PUT {FILES}?path=d/a.txt&mode=755");
        let made = server.send(&put, &[("content-digest", ABC_DIGEST)], b"abc").is(201);
        assert_eq!(made.headers["etag"], format!("\"{ABC}\""));
        assert_eq!(made.headers["repr-digest"], ABC_DIGEST);
        assert_eq!(made.object()["sha256"], ABC);
        let path = place.workspace.join("d/a.txt");
        assert_eq!(fs::read(&path).unwrap(), b"abc");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
        // Another hash than was said: nothing is changed, and nothing is left.
        let wrong = server.send(&put, &[("content-digest", ABC_DIGEST)], b"abd").is(400);
        assert_eq!(wrong.object()["kind"], "usage");
        assert_eq!(fs::read(&path).unwrap(), b"abc");
        assert_eq!(fs::read_dir(place.workspace.join("d")).unwrap().count(), 1);
        // What has to be so.
        let on = |name: &str, value: &str| server.send(&put, &[(name, value)], b"next").status;
        assert_eq!(on("if-none-match", "*"), 412);
        for other in [&format!("\"{}\"", "0".repeat(64)), "\"v1\"", "W/\"v1\"", "\"a\", \"b\""] {
            assert_eq!(on("if-match", other), 412, "{other}");
        }
        for none in ["v1", "\"v1", ""] {
            assert_eq!(on("if-match", none), 400, "{none}");
        }
        assert_eq!(fs::read(&path).unwrap(), b"abc");
        assert_eq!(on("if-match", &format!("\"{ABC}\"")), 200);
        assert_eq!(fs::read(&path).unwrap(), b"next");
        let missing = format!("PUT {FILES}?path=none/x&parents=false");
        assert_eq!(server.send(&missing, &[], b"x").status, 404);
        assert!(!place.workspace.join("none").exists());
        let other = format!("PUT {FILES}?path=none2&mood=good");
        let strict = server.send(&other, &[], b"x").is(400);
        assert!(strict.text().contains("mood"), "{}", strict.text());
        assert!(!place.workspace.join("none2").exists());
    });
}

#[test]
fn a_part_of_a_file_is_read_and_what_is_known_is_not_sent_again() {
    everyone(|place| {
        let server = served(place);
        let text: String = (0..200_000).map(|n| format!("{n}\n")).collect();
        place.write("long", &text);
        place.write("short", "abc");
        let get = |name: &str, headers: &[(&str, &str)]| {
            server.send(&format!("GET {FILES}?path={name}"), headers, b"")
        };
        let whole = get("long", &[]).is(200);
        assert!(whole.is_whole && whole.body == text.as_bytes());
        assert_eq!(whole.headers["content-disposition"], "attachment");
        assert_eq!(whole.headers["x-content-type-options"], "nosniff");
        let tag = whole.headers["etag"].clone();
        for (range, from, to) in [
            ("bytes=0-9", 0, 10),
            ("bytes=262140-262150", 262_140, 262_151),
            ("bytes=700000-", 700_000, text.len()),
            ("bytes=-5", text.len() - 5, text.len()),
        ] {
            let part = get("long", &[("range", range)]).is(206);
            assert_eq!(part.text(), text[from..to], "{range}");
            let said = format!("bytes {from}-{}/{}", to - 1, text.len());
            assert_eq!(part.headers["content-range"], said);
            assert_eq!(part.headers["etag"], tag);
        }
        assert_eq!(get("short", &[("range", "bytes=1-1")]).is(206).text(), "b");
        let outside = get("short", &[("range", "bytes=3-")]).is(416);
        assert_eq!(outside.headers["content-range"], "bytes */3");
        assert_eq!(get("long", &[("if-none-match", &tag)]).is(304).body, b"");
        assert_eq!(get("short", &[("if-match", &tag)]).status, 412);
        let other = [("if-range", tag.as_str()), ("range", "bytes=1-1")];
        assert_eq!(get("short", &other).is(200).text(), "abc");
        let plain = server.get(&format!("GET {FILES}?path=short&hash=false")).is(200);
        assert!(!plain.headers.contains_key("etag") && plain.text() == "abc");
    });
}

#[test]
fn a_name_that_is_not_utf8_or_has_a_line_end_is_named_over_http() {
    everyone(|place| {
        let server = served(place);
        // "d/\n\xff" in base64, of the alphabet for addresses.
        let odd = "path_base64=ZC8K_w";
        server.send(&format!("PUT {FILES}?{odd}"), &[], b"odd").is(201);
        assert_eq!(server.get(&format!("GET {FILES}?{odd}")).is(200).text(), "odd");
        let listed = server.get(&format!("GET {FILES}/list?path=d")).is(200).object();
        assert_eq!(listed["entries"][0]["path_base64"], "Cv8=");
        let moved = json!({"from_base64": "ZC8K/w==", "to": "plain"});
        server.say(&format!("POST {FILES}/move"), &moved).is(200);
        assert_eq!(fs::read(place.workspace.join("plain")).unwrap(), b"odd");
        for n in 0..7 {
            place.write(&format!("many/{n}"), "");
        }
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let line = format!("GET {FILES}/list?path=many&limit=3{cursor}");
            let page = server.get(&line).is(200).object();
            for entry in page["entries"].as_array().unwrap() {
                seen.push(entry["path"].as_str().unwrap().to_owned());
            }
            let Some(next) = page["next"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(seen, ["0", "1", "2", "3", "4", "5", "6"]);
    });
}

/// Asks for everything that can be done with a path that leads out, or to what is no file.
fn every_use_is_refused(server: &Served, path: &str) {
    let check = |answered: crate::http_client::Answered, what: &str| {
        let status = answered.status;
        assert!((400..500).contains(&status), "{what} {path}: {status}");
        assert!(!answered.text().contains("abc\""), "{what} {path}");
        let kind = answered.object()["kind"].as_str().unwrap().to_owned();
        assert!(answered.headers["content-type"].contains("problem+json"), "{kind}");
    };
    check(server.get(&format!("GET {FILES}?path={path}")), "read");
    check(server.get(&format!("GET {FILES}/content?path={path}")), "content");
    check(server.get(&format!("GET {FILES}/window?path={path}")), "window");
    // What changes a link itself is not tried on what lies in the workspace.
    if !matches!(path, "link" | "up") {
        check(server.send(&format!("PUT {FILES}?path={path}"), &[], b"evil"), "write");
        let text = json!({"path": path.replace("%2F", "/"), "mode": "777"});
        if !matches!(path, "nul%00byte" | "pipe" | "socket") {
            check(server.say(&format!("POST {FILES}/chmod"), &text), "chmod");
            let edits = json!([{"old": "abc", "new": "evil"}]);
            let edit = json!({"path": path.replace("%2F", "/"), "edits": edits});
            check(server.say(&format!("POST {FILES}/edit"), &edit), "edit");
            let to = json!({"from": path.replace("%2F", "/"), "to": "copied"});
            check(server.say(&format!("POST {FILES}/copy"), &to), "copy");
        }
    }
}

#[test]
fn no_path_of_a_request_leads_out_of_the_workspace() {
    everyone(|place| {
        let server = served(place);
        let outside = place.base.join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), "abc").unwrap();
        place.give(&outside.join("secret"));
        place.give(&outside);
        let out = outside.to_str().unwrap();
        let trap = format!(
            "import os, socket\n\
             os.symlink({out:?}, 'way')\nos.symlink({out:?}+'/secret', 'link')\n\
             os.symlink('../outside/secret', 'up')\nos.mkfifo('pipe')\n\
             socket.socket(socket.AF_UNIX).bind('socket')\n"
        );
        let made = place.host(crate::place::PYTHON).args(["-c", &trap]).status().unwrap();
        assert!(made.success());
        let secret = outside.join("secret");
        let named = [
            "way/secret",
            "link",
            "up",
            "../outside/secret",
            "a/../../outside/secret",
            "..%2Foutside%2Fsecret",
            secret.to_str().unwrap(),
            "/etc/passwd",
            "/proc/self/environ",
            "pipe",
            "socket",
            "/dev/zero",
            "nul%00byte",
        ];
        for path in named {
            every_use_is_refused(&server, path);
        }
        let patch = b"--- a/way/secret\n+++ b/way/secret\n@@ -1 +1 @@\n-abc\n+evil\n".as_slice();
        server.send(&format!("POST {FILES}/patch"), &[], patch).is(409);
        let tar = place.base.join("evil.tar");
        fs::write(outside.join("new"), "evil").unwrap();
        let packed = std::process::Command::new("tar")
            .args(["-C", out, "--transform", "s,^,way/,", "-cf"])
            .arg(&tar)
            .arg("new")
            .status();
        assert!(packed.unwrap().success());
        fs::remove_file(outside.join("new")).unwrap();
        let unpacked = server.send(&format!("PUT {FILES}/archive"), &[], &fs::read(&tar).unwrap());
        assert!((400..500).contains(&unpacked.status), "{}", unpacked.text());
        let found: Vec<_> =
            fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(found, ["secret"]);
        assert_eq!(fs::read(&secret).unwrap(), b"abc");
        assert!(fs::symlink_metadata(place.workspace.join("pipe")).unwrap().file_type().is_fifo());
        // The control: a program that takes no care goes there by the same names.
        let careless = "open('way/secret','a').write('!'); print(open('link').read())";
        let went = place.host(crate::place::PYTHON).args(["-c", careless]).output().unwrap();
        assert_eq!(went.stdout, b"abc!\n");
        assert_eq!(fs::read(&secret).unwrap(), b"abc!");
    });
}

#[test]
fn who_hangs_up_in_the_middle_of_a_body_leaves_all_as_it_was() {
    everyone(|place| {
        let server = served(place);
        place.write("d/a", "abc");
        let names = || {
            let all = fs::read_dir(place.workspace.join("d")).unwrap();
            all.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
        };
        for name in ["a", "b"] {
            let put = format!("PUT {FILES}?path=d/{name}");
            let mut stream = server.head(&put, &[("content-length", "24000000")]);
            // More than waits in any buffer on the way: it is being written.
            stream.write_all(&vec![b'x'; 20_000_000]).unwrap();
            assert_eq!(names(), ["a"], "what is not whole has no name");
            drop(stream);
            let is_over = until(SOON, || (names() == ["a"]).then_some(()));
            assert!(is_over.is_some(), "{:?}", names());
        }
        assert_eq!(fs::read(place.workspace.join("d/a")).unwrap(), b"abc");
        // The control: the same to its end.
        server.send(&format!("PUT {FILES}?path=d/b"), &[], &[b'x'; 1_000_000]).is(201);
        assert_eq!(fs::metadata(place.workspace.join("d/b")).unwrap().len(), 1_000_000);
    });
}

#[test]
fn large_files_pass_through_a_server_that_holds_little_of_them() {
    everyone(|place| {
        let server = served(place);
        server.send(&format!("PUT {FILES}?path=small"), &[], b"x").is(201);
        server.get(&format!("GET {FILES}?path=small")).is(200);
        let before = server.peak();
        let length = LARGE_BYTES.to_string();
        let put = format!("PUT {FILES}?path=large");
        let mut stream = server.head(&put, &[("content-length", &length)]);
        let piece: Vec<u8> = (0..1 << 20).map(|n: u32| (n % 251) as u8).collect();
        for _ in 0..LARGE_BYTES / piece.len() {
            stream.write_all(&piece).unwrap();
        }
        let written = answer(stream).is(201).object();
        assert_eq!(written["bytes"], LARGE_BYTES);
        let mut stream = server.head(&format!("GET {FILES}?path=large"), &[]);
        let (mut place_of, mut count) = (vec![0; 1 << 20], 0);
        loop {
            match stream.read(&mut place_of).unwrap() {
                0 => break,
                more => count += more,
            }
        }
        assert!(count > LARGE_BYTES, "{count}");
        let archive = server.head(&format!("GET {FILES}/archive?path=large"), &[]);
        let mut archive = std::io::BufReader::with_capacity(1 << 20, archive);
        let copied = std::io::copy(&mut archive, &mut std::io::sink()).unwrap();
        assert!(copied > LARGE_BYTES as u64, "{copied}");
        let taken = server.peak().saturating_sub(before);
        assert!(taken < MOST_MEMORY, "{taken} bytes for {LARGE_BYTES}");
        fs::remove_file(place.workspace.join("large")).unwrap();
    });
}

#[test]
fn a_stream_of_events_tells_what_happens_to_files() {
    everyone(|place| {
        let server = served(place);
        let stream = server.head(&format!("GET {FILES}/watch?glob=**%2F*.txt"), &[]);
        let mut lines = event_lines(stream);
        let mut next = |name: &str| {
            let event = lines.by_ref().find(|line| line.starts_with("event: ")).unwrap();
            assert_eq!(event, format!("event: {name}"));
            let data = lines.by_ref().find(|line| line.starts_with("data: ")).unwrap();
            serde_json::from_str::<serde_json::Value>(&data[6..]).unwrap()
        };
        next("ready");
        server.send(&format!("PUT {FILES}?path=a.rs"), &[], b"x").is(201);
        place.says(&["exec", "s", "--shell", "echo x >b.txt"], 0);
        assert_eq!(next("created")["path"], "b.txt");
        assert_eq!(next("modified")["path"], "b.txt");
    });
}

#[test]
fn texts_are_edited_patched_and_searched_over_http() {
    everyone(|place| {
        let server = served(place);
        place.write("src/a.txt", "one\ntwo\ntwo\n");
        let edit = |old: &str, all: bool| {
            let edits = json!([{"old": old, "new": "three", "all": all}]);
            server.say(&format!("POST {FILES}/edit"), &json!({"path": "src/a.txt", "edits": edits}))
        };
        let refused = edit("two", false).is(409);
        assert!(refused.headers["content-type"].contains("problem+json"));
        assert_eq!(refused.object()["kind"], "conflict");
        assert_eq!(refused.object()["result"]["report"]["edits"][0]["lines"], json!([2, 3]));
        assert_eq!(edit("two", true).is(200).object()["changed"], true);
        let read = || fs::read_to_string(place.workspace.join("src/a.txt")).unwrap();
        assert_eq!(read(), "one\nthree\nthree\n");
        let envelope =
            "*** Begin Patch\n*** Update File: src/a.txt\n@@\n-one\n+four\n three\n*** End Patch\n";
        let patch = format!("POST {FILES}/patch");
        server.send(&patch, &[], envelope.as_bytes()).is(200);
        assert_eq!(read(), "four\nthree\nthree\n");
        let unified =
            "--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1,3 +1,3 @@\n-none\n+five\n three\n three\n";
        let unfit = server.send(&patch, &[], unified.as_bytes()).is(409).object();
        assert_eq!(unfit["result"]["report"]["outcome"], "refused");
        assert_eq!(read(), "four\nthree\nthree\n");
        let lines = json!({"patterns": ["th.ee"], "paths": ["src"], "limit": 1});
        let found = server.say(&format!("POST {FILES}/grep"), &lines).is(200).object();
        assert_eq!(found["files"][0]["lines"][0]["line"], 2);
        let names = json!({"patterns": ["**/*.txt"], "kinds": ["file"]});
        let found = server.say(&format!("POST {FILES}/glob"), &names).is(200).object();
        assert_eq!(found["entries"][0]["path"], "src/a.txt");
        let strict = json!({"patterns": ["x"], "depth": 3});
        let wrong = server.say(&format!("POST {FILES}/glob"), &strict).is(400);
        assert!(wrong.text().contains("depth"), "{}", wrong.text());
        let window = server.get(&format!("GET {FILES}/window?path=src/a.txt&offset=1&limit=1"));
        assert_eq!(window.is(200).object()["window"]["content"], "2|three");
    });
}

#[test]
fn a_directory_goes_out_and_comes_in_as_an_archive() {
    everyone(|place| {
        let server = served(place);
        place.write("d/a", "abc");
        let tar = server.get(&format!("GET {FILES}/archive?path=d")).is(200);
        assert!(tar.is_whole);
        let put = format!("PUT {FILES}/archive?path=e/f");
        assert_eq!(server.send(&put, &[], &tar.body).is(200).object()["files"], 1);
        assert_eq!(fs::read(place.workspace.join("e/f/a")).unwrap(), b"abc");
        server.send(&put, &[], &tar.body).is(409);
        server.send(&format!("{put}&replace=true"), &[], &tar.body).is(200);
        let cut = &tar.body[..700];
        server.send(&format!("PUT {FILES}/archive?path=g"), &[], cut).is(400);
        assert!(!place.workspace.join("g").exists());
    });
}

#[test]
fn a_download_ends_with_the_key_that_it_was_asked_by() {
    everyone(|place| {
        let server = Served::new(place);
        let large = place.write("large", "");
        fs::File::options().write(true).open(large).unwrap().set_len(64 << 20).unwrap();
        let workspace = place.workspace.to_str().unwrap();
        let begin = |name: &str, words: &[&str]| {
            let words = [&["key", "create", name], words].concat();
            let key = format!("Bearer {}", place.says(&words, 0).text().trim());
            let mut headers = vec![("authorization", key.as_str())];
            headers.push(("content-type", "application/json"));
            let wish = json!({"name": "s", "workspace": workspace}).to_string();
            server.send("POST /v1/sandboxes", &headers, wish.as_bytes()).is(201);
            let line = format!("GET {FILES}?path=large");
            let mut stream = server.head(&line, &[("authorization", &key)]);
            stream.read_exact(&mut [0; 1000]).unwrap();
            stream
        };
        // Two keys may share a directory.
        let mut hers = begin("alice", &["--allow-workspace", workspace]);
        let mut his = begin("bob", &["--allow-workspace", workspace]);
        place.says(&["key", "revoke", "alice"], 0);
        std::thread::sleep(Duration::from_millis(2500));
        let rest = |stream: &mut dyn Read| {
            let mut bytes = Vec::new();
            // To its end, or to where it is reset.
            stream.read_to_end(&mut bytes).ok();
            bytes.len()
        };
        assert!(rest(&mut his) > 60 << 20, "the control");
        assert!(rest(&mut hers) < 32 << 20, "it goes on");
    });
}
