//! Sandboxes that lie on an image: what it brings, what stays outside, and what it cannot do.

use crate::place::{PYTHON, Place, SOON, everyone, outcome, skipped};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// What a small system needs of one program that is all of them.
const APPLETS: [&str; 15] = [
    "sh", "ls", "cat", "id", "env", "touch", "rm", "mkdir", "pwd", "stat", "readlink", "grep",
    "true", "mount", "mv",
];

pub(crate) fn busybox() -> Option<&'static str> {
    let found =
        ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| Path::new(path).exists());
    if found.is_none() {
        skipped("busybox", "no static busybox is installed");
    }
    found
}

/// A root file system in a plain directory of the person's, beside the workspace.
pub(crate) fn root(place: &Place, name: &str) -> Option<PathBuf> {
    let busybox = busybox()?;
    let root = place.base.join(name);
    for directory in ["", "bin", "etc", "root"] {
        fs::create_dir_all(root.join(directory)).unwrap();
        place.give(&root.join(directory));
    }
    fs::copy(busybox, root.join("bin/busybox")).unwrap();
    place.give(&root.join("bin/busybox"));
    for applet in APPLETS {
        symlink("busybox", root.join("bin").join(applet)).unwrap();
    }
    fs::write(root.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n").unwrap();
    place.give(&root.join("etc/passwd"));
    Some(root)
}

/// The entries of a layer with such a system.
pub(crate) fn system(busybox: &str) -> Vec<Value> {
    let mut entries = vec![json!({"path": "bin/busybox", "from": busybox})];
    let link =
        |applet| json!({"path": format!("bin/{applet}"), "kind": "link", "target": "busybox"});
    entries.extend(APPLETS.map(link));
    entries.push(
        json!({"path": "etc/passwd", "content": "root:x:0:0:root:/root:/bin/sh\n", "mode": 0o644}),
    );
    entries
}

/// Writes an image as an OCI layout below the place, and returns its reference.
pub(crate) fn layout(place: &Place, name: &str, image: &Value) -> String {
    let path = place.base.join(name);
    fs::create_dir(&path).unwrap();
    place.give(&path);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/behaviour/images.py");
    let script = fs::read_to_string(script).unwrap();
    let mut writer = place
        .host(PYTHON)
        .args(["-c", &script, path.to_str().unwrap()])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    writer.stdin.take().unwrap().write_all(image.to_string().as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success());
    format!("oci:{}", path.display())
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// What a shell inside says to a line.
fn shell(place: &Place, image: &str, line: &str) -> String {
    let said = place.run(&["--image", image, "--", "/bin/sh", "-c", line]);
    assert_eq!(said.code(), Some(0), "as {}: {line}: {said:?}", place.uid());
    said.text()
}

#[test]
fn a_command_lies_on_the_image_and_nothing_of_the_host_is_there() {
    everyone(|place| {
        let Some(root) = root(place, "root") else { return };
        let image = text(&root);
        let secret = place.base.join("home/secret");
        fs::write(&secret, "canary").unwrap();
        place.give(&secret);
        place.write("here", "workspace");
        let names = shell(place, image, "ls /");
        let names: Vec<&str> = names.split_whitespace().collect();
        let all = ["bin", "dev", "etc", "home", "proc", "root", "tmp", "var", "workspace"];
        assert_eq!(names, all);
        // The way up from the root leads to the root.
        assert_eq!(shell(place, image, "ls /.. && ls /../.."), shell(place, image, "ls / && ls /"));
        assert_eq!(shell(place, image, "cat here /workspace/here"), "workspaceworkspace");
        let secret = text(&secret);
        for way in [
            secret.to_owned(),
            format!("/..{secret}"),
            format!("/proc/1/root{secret}"),
            format!("/proc/1/cwd/../../../../../..{secret}"),
            "/usr/bin/env".to_owned(),
            "/etc/os-release".to_owned(),
            "/proc/1/root/usr".to_owned(),
        ] {
            let said = place.run(&["--image", image, "--", "/bin/sh", "-c", &format!("cat {way}")]);
            assert_eq!(said.code(), Some(1), "{way}: {said:?}");
        }
        let mounts = shell(place, image, "cat /proc/self/mounts");
        let of_host = ["/sys", "/run", "/usr", "/lib"];
        let shown = |name: &&str| mounts.lines().any(|line| line.split(' ').nth(1) == Some(name));
        assert!(!of_host.iter().any(shown), "{mounts}");
        // Controls: the host's root does show its own, and the secret can be read outside.
        assert_eq!(place.run(&["--", "/usr/bin/env", "true"]).code(), Some(0));
        assert_eq!(outcome(place.host("cat").arg(secret), SOON).text(), "canary");
    });
}

#[test]
fn what_is_written_to_an_image_goes_with_a_run_and_stays_with_a_session() {
    everyone(|place| {
        let Some(busybox) = busybox() else { return };
        let image = layout(place, "oci", &json!({"layers": [system(busybox)]}));
        let change = "echo new >/etc/new && rm /etc/passwd && mkdir -p /usr/bin && ls /etc";
        let after = "hostname\nhosts\nnew\nresolv.conf\n";
        assert_eq!(shell(place, &image, change), after);
        assert_eq!(shell(place, &image, "ls /etc"), "hostname\nhosts\npasswd\nresolv.conf\n");
        // A copy-on-write workspace lies on layers of its own.
        place.write("real", "as it was");
        let beside = [
            "--image",
            &image,
            "--cow",
            "--",
            "/bin/sh",
            "-c",
            "echo new >real; cat /workspace/real",
        ];
        assert_eq!(place.run(&beside).text(), "new\n");
        assert_eq!(fs::read_to_string(place.workspace.join("real")).unwrap(), "as it was");
        place.says(&["create", "--name", "kept", "--image", &image], 0);
        place.says(&["exec", "kept", "--", "/bin/sh", "-c", change], 0);
        let journals = fs::read_dir(place.state.join("sessions")).unwrap();
        for session in journals.map(|entry| entry.unwrap().path().join("journal")) {
            let _ = place.host("fuser").args(["-k", text(&session)]).output();
        }
        place.says(&["resume", "kept"], 0);
        assert_eq!(place.says(&["exec", "kept", "--", "/bin/ls", "/etc"], 0).text(), after);
        let shown = place.says(&["show", "kept", "--json"], 0).object();
        assert_eq!(shown["image"], json!(image));
        // Another one that lies on the same layers has none of it.
        assert_eq!(shell(place, &image, "ls /etc"), "hostname\nhosts\npasswd\nresolv.conf\n");
        // It is used, by a session that sleeps too.
        let error = place.say(&["image", "rm", &image]);
        assert!(error.code() == Some(1) && error.stderr.contains("used by a session"), "{error:?}");
        place.says(&["rm", "kept"], 0);
        let removed = place.says(&["image", "gc", "--json"], 0).object();
        assert_eq!(removed["images"].as_array().map(Vec::len), Some(1), "{removed}");
        assert_eq!(fs::read_dir(place.state.join("images/layers")).unwrap().count(), 0);
        assert_eq!(fs::read_dir(place.state.join("kept")).unwrap().count(), 0);
    });
}

#[test]
fn an_image_says_how_it_is_run_and_a_caller_stands_above_it() {
    everyone(|place| {
        let Some(busybox) = busybox() else { return };
        let config = json!({
            "Entrypoint": ["/bin/sh", "-c"],
            "Cmd": ["echo $GREETING from $PWD by $(id -u)"],
            "Env": ["GREETING=hello", "PATH=/bin", "HOME=/root"],
            "WorkingDir": "/srv/app",
        });
        let image = layout(place, "oci", &json!({"layers": [system(busybox)], "config": config}));
        let run = |words: &[&str]| {
            let said = place.run(&[&["--image", &image], words].concat());
            assert_eq!(said.code(), Some(0), "{words:?}: {said:?}");
            said.text()
        };
        assert_eq!(run(&[]), "hello from /srv/app by 1000\n");
        assert_eq!(run(&["--user", "root"]), "hello from /srv/app by 0\n");
        assert_eq!(run(&["--env", "GREETING=bye"]), "bye from /srv/app by 1000\n");
        assert_eq!(run(&["--", "echo $HOME $PATH"]), "/root /bin\n");
        assert_eq!(run(&["--cwd", "/etc", "--", "pwd"]), "/etc\n");
        assert_eq!(run(&["--entrypoint", "/bin/ls", "--", "/bin/cat"]), "/bin/cat\n");
        assert_eq!(run(&["--entrypoint", "", "--", "/bin/pwd"]), "/srv/app\n");
        assert_eq!(run(&["--shell", "pwd"]), "/srv/app\n");
        let own = json!({"User": "0:0", "Cmd": ["/bin/id", "-u"]});
        let image =
            layout(place, "root-image", &json!({"layers": [system(busybox)], "config": own}));
        assert_eq!(place.run(&["--image", &image]).text(), "0\n");
        assert_eq!(place.run(&["--image", &image, "--user", "sandbox"]).text(), "1000\n");
        let named = json!({"User": "node", "Cmd": ["/bin/id", "-u"]});
        let image = layout(place, "named", &json!({"layers": [system(busybox)], "config": named}));
        assert_eq!(place.run(&["--image", &image]).text(), "1000\n");
        let told = place.says(&["explain", "--image", &image], 0).text();
        assert!(told.contains("the image wants user node"), "{told}");
        // It is said where the command runs, too, unless somebody chose.
        let said = place.run(&["--image", &image]).stderr;
        assert!(said.contains("the image wants user node, who is in none of its lists"), "{said}");
        let chosen = place.run(&["--image", &image, "--user", "sandbox"]);
        assert_eq!((chosen.text().as_str(), chosen.stderr.as_str()), ("1000\n", ""));
    });
}

/// Nothing of the image gives way for the directory that commands start in.
#[test]
fn a_working_directory_is_found_through_the_links_of_its_image() {
    everyone(|place| {
        let Some(busybox) = busybox() else { return };
        let mut layer = system(busybox);
        layer.extend([
            json!({"path": "usr/lib/app/f", "content": "here"}),
            json!({"path": "lib", "kind": "link", "target": "usr/lib"}),
            json!({"path": "out", "kind": "link", "target": "/etc/../../.."}),
            json!({"path": "up", "kind": "link", "target": "/etc/../../../tmp"}),
            json!({"path": "loop", "kind": "link", "target": "loop"}),
            json!({"path": "away", "kind": "link", "target": "/nowhere"}),
        ]);
        let line = "pwd -P; ls; for l in /lib /out /loop /away; do readlink $l; done; grep -c root /etc/passwd";
        let links = "usr/lib\n/etc/../../..\nloop\n/nowhere\n";
        let climbing = format!("/up/{}-climbed", place.marker);
        let climbed = format!("/tmp/{}-climbed\n", place.marker);
        for (name, cwd, expected) in [
            ("climbing", &*climbing, &*climbed),
            ("link", "/lib/app", "/usr/lib/app\nf\n"),
            ("new", "/lib/new/deep/", "/usr/lib/new/deep\n"),
            ("plain", "/srv//own/", "/srv/own\n"),
            ("root", "/out/within", "/within\n"),
        ] {
            let config = json!({"WorkingDir": cwd, "Cmd": ["/bin/sh", "-c", line]});
            let image = layout(place, name, &json!({"layers": [layer], "config": config}));
            let said = place.run(&["--image", &image]);
            let text = said.text();
            let whole = text.starts_with(expected) && text.contains(links);
            assert!(whole && said.code() == Some(0), "{cwd}: {said:?}");
        }
        assert!(!Path::new(climbed.trim_end()).exists(), "the host's own directory");
        for (name, cwd) in [("file", "/etc/passwd"), ("looping", "/loop/x"), ("nowhere", "/away/x")]
        {
            let config = json!({"WorkingDir": cwd, "Cmd": ["/bin/true"]});
            let image = layout(place, name, &json!({"layers": [layer], "config": config}));
            assert_eq!(place.run(&["--image", &image]).code(), Some(125), "{cwd}");
            let look = ["--image", &image, "--cwd", "/", "--", "/bin/sh", "-c", line];
            let said = place.run(&look);
            assert!(said.text().contains(links), "{cwd}: {said:?}");
        }
    });
}

#[test]
fn what_a_layer_tells_nothing_of_is_as_passable_as_before_and_a_root_hides_all_below_it() {
    everyone(|place| {
        let Some(busybox) = busybox() else { return };
        let above = [
            json!({"path": "usr/share/deep/new", "content": "new"}),
            json!({"path": "etc/.wh.group", "content": ""}),
        ];
        let layers = json!({"layers": [system(busybox), above]});
        let image = layout(place, "parents", &layers);
        // Under a mask that would close them to everybody else.
        let line = format!(
            "umask 077; exec \"$0\" run --image {image} -- /bin/stat -c %a /usr/share/deep /usr/share /etc"
        );
        let said = outcome(place.host("sh").args(["-c", &line, place.program()]), SOON);
        assert_eq!(said.text(), "755\n755\n755\n", "{said:?}");
        let hides =
            [vec![json!({"path": ".wh..wh..opq", "content": ""})], system(busybox)].concat();
        let first = [system(busybox), vec![json!({"path": "low/x", "content": "low"})]].concat();
        for (name, layers, is_seen) in [
            ("hides", json!({"layers": [first, hides]}), false),
            ("control", json!({"layers": [first, system(busybox)]}), true),
        ] {
            let image = layout(place, name, &layers);
            let said = place.run(&["--image", &image, "--", "/bin/ls", "/low/x"]);
            assert_eq!(said.code() == Some(0), is_seen, "{name}: {said:?}");
        }
    });
}

#[test]
fn commands_are_the_user_that_the_image_wants() {
    everyone(|place| {
        let Some(busybox) = busybox() else { return };
        let mut layer = system(busybox);
        layer.retain(|entry| entry["path"] != "etc/passwd");
        let users = "root:x:0:0::/root:/bin/sh\nnode:x:1007:1008::/srv:/bin/sh\n";
        layer.extend([
            json!({"path": "etc/passwd", "content": users}),
            json!({"path": "etc/group", "content": "staff:x:50:\n"}),
            json!({"path": "srv/own", "content": "x"}),
        ]);
        let line = "echo $(id -u) $(id -g) $(stat -c '%u %g' /srv/own) && echo y >/srv/own && \
                    echo z >/workspace/made && stat -c %u /workspace/made";
        for (name, wished, expected) in [
            ("named", "node", "1007 1008 1007 1008\n1007\n"),
            ("group", "node:staff", "1007 50 1007 50\n1007\n"),
            ("number", "4321", "4321 4321 4321 4321\n4321\n"),
            ("rootgroup", "4321:0", "4321 0 4321 0\n4321\n"),
            ("nobody", "65534:65534", "65534 65534 65534 65534\n65534\n"),
        ] {
            let config = json!({"User": wished, "Cmd": ["/bin/sh", "-c", line]});
            let image = layout(place, name, &json!({"layers": [layer], "config": config}));
            let said = place.run(&["--image", &image]);
            assert_eq!((said.text().as_str(), said.stderr.as_str()), (expected, ""), "{wished}");
            // Outside it is whose the workspace is.
            use std::os::unix::fs::MetadataExt;
            let made = fs::metadata(place.workspace.join("made")).unwrap();
            assert_eq!(made.uid(), fs::metadata(&place.workspace).unwrap().uid(), "{wished}");
            fs::remove_file(place.workspace.join("made")).unwrap();
            let root = place.run(&["--image", &image, "--user", "root", "--", "/bin/id", "-u"]);
            assert_eq!(root.text(), "0\n");
        }
        let kept = layout(
            place,
            "kept",
            &json!({"layers": [layer], "config": {"User": "node", "Cmd": ["/bin/sh"]}}),
        );
        place.says(&["create", "--name", "s", "--image", &kept], 0);
        for _ in 0..2 {
            let words = ["exec", "s", "--", "/bin/sh", "-c", "id -u; id -un"];
            assert_eq!(place.says(&words, 0).text(), "1007\nnode\n");
            place.says(&["pause", "s"], 0);
        }
    });
}

#[test]
fn layers_lie_on_each_other_with_what_the_upper_ones_remove() {
    everyone(|place| {
        let Some(busybox) = busybox() else { return };
        let mut lower = system(busybox);
        lower.extend(["gone", "kept", "old/one", "old/two"].map(|path| json!({"path": path})));
        let upper = json!([
            {"path": ".wh.gone"}, {"path": "old/.wh..wh..opq"}, {"path": "old/three"},
            {"path": "bin/su", "mode": 0o6755, "content": "#!"}, {"path": "bin/disk", "kind": "device"},
        ]);
        let image = layout(place, "oci", &json!({"layers": [lower, upper]}));
        assert_eq!(
            shell(place, &image, "ls -d /gone /kept /old/* 2>/dev/null || true"),
            "/kept\n/old/three\n"
        );
        assert_eq!(
            shell(place, &image, "stat -c %a /bin/su; ls /bin/disk 2>/dev/null || true"),
            "755\n"
        );
        // What is removed inside comes back in no way.
        assert_eq!(shell(place, &image, "rm -r /old && mkdir /old && ls /old"), "");
        let shown = place.says(&["image", "inspect", &image, "--json"], 0).object();
        assert_eq!(shown["layers"][1]["left_out"], json!(1));
        assert_eq!(shown["layers"][1]["set_ids_dropped"], json!(1));
        let bare = image.strip_prefix("oci:").unwrap();
        if outcome(place.host("sh").args(["-c", "command -v skopeo"]), SOON).code() != Some(0) {
            return skipped("skopeo", "no skopeo is installed");
        }
        for kind in ["docker-archive", "oci-archive"] {
            let archive = format!("{kind}:{bare}.{kind}");
            let to = format!("{archive}:v1");
            let policy = ["--insecure-policy", "--tmpdir", text(&place.base)];
            let mut copy = place.host("skopeo");
            let copied =
                outcome(copy.args(policy).args(["copy", "-q", &format!("{image}:v1"), &to]), SOON);
            assert_eq!(copied.code(), Some(0), "{copied:?}");
            assert_eq!(shell(place, &archive, "ls /old"), "three\n");
        }
    });
}

/// What an image may have in the place of what every sandbox has.
const PLACES: [&str; 13] = [
    "proc",
    "dev",
    "tmp",
    "var",
    "home",
    "workspace",
    "etc",
    "etc/hosts",
    "var/tmp",
    "dev/shm",
    "dev/null",
    "home/sandbox",
    "proc/sys",
];

#[test]
fn what_an_image_has_in_the_place_of_a_mount_leads_nowhere() {
    everyone(|place| {
        let Some(plain) = root(place, "plain") else { return };
        let outside = place.base.join("outside");
        for directory in ["", "sys", "shm", "tmp", "sandbox"] {
            fs::create_dir_all(outside.join(directory)).unwrap();
            place.give(&outside.join(directory));
        }
        for file in ["hosts", "null"] {
            fs::write(outside.join(file), "as it was").unwrap();
            place.give(&outside.join(file));
        }
        let before = listing(&outside);
        let up = format!("../../../../../../../..{}", outside.display());
        let own = place.workspace.parent().unwrap().strip_prefix("/").unwrap().to_owned();
        let ways = PLACES.map(PathBuf::from).into_iter().chain([own]);
        for (number, at) in ways.enumerate() {
            for (kind, target) in [("absolute", text(&outside)), ("dots", &up), ("file", "")] {
                let root = root(place, &format!("hostile-{number}-{kind}")).unwrap();
                let link = root.join(&at);
                fs::create_dir_all(link.parent().unwrap()).unwrap();
                let _ = fs::remove_dir_all(&link);
                match kind {
                    "file" => fs::write(&link, "a file").unwrap(),
                    _ => symlink(target, &link).unwrap(),
                }
                let owned = place.host("true").status().unwrap().success();
                assert!(owned);
                give_all(place, &root);
                let said = shell(
                    place,
                    text(&root),
                    "echo x >/workspace/made && echo x >/tmp/made && echo x >/dev/null && \
                     echo x >/home/sandbox/made && echo x >/dev/shm/made && cat /proc/self/comm && \
                     stat -f -c %T /proc",
                );
                assert_eq!(said, "cat\nproc\n", "{} {kind}", at.display());
                assert_eq!(listing(&outside), before, "{} {kind}", at.display());
                assert_eq!(fs::read_to_string(place.workspace.join("made")).unwrap(), "x\n");
                fs::remove_file(place.workspace.join("made")).unwrap();
                fs::remove_dir_all(&root).unwrap();
            }
        }
        // Control: such a link does lead there, for whoever follows it outside.
        symlink(&outside, plain.join("followed")).unwrap();
        assert!(plain.join("followed/hosts").exists());
    });
}

fn give_all(place: &Place, path: &Path) {
    place.give(path);
    if fs::symlink_metadata(path).unwrap().is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            give_all(place, &entry.unwrap().path());
        }
    }
}

/// Every name below a directory, with the content of files.
fn listing(path: &Path) -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(listing(&path)),
            false => all.push((path.clone(), fs::read_to_string(&path).unwrap())),
        }
        all.push((path, String::new()));
    }
    all.sort();
    all
}

#[test]
fn the_way_to_the_workspace_cannot_be_moved_away_in_an_image() {
    everyone(|place| {
        let Some(root) = root(place, "root") else { return };
        let image = text(&root);
        let way = text(&place.base);
        for line in [
            format!("mv {way} /tmp/moved"),
            format!("mv {way}/workspace {way}/moved"),
            "mv /workspace /moved".to_owned(),
            "mv /dev /moved".to_owned(),
            "mv /proc /moved".to_owned(),
        ] {
            let said = place.run(&["--image", image, "--", "/bin/sh", "-c", &line]);
            assert_eq!(said.code(), Some(1), "as {}: {line}: {said:?}", place.uid());
        }
        // Control: what leads to nothing can be moved.
        shell(place, image, "mkdir -p /a/b /tmp/c && mv /a /moved && mv /tmp/c /tmp/d");
    });
}

#[test]
fn a_link_that_a_command_may_have_planted_is_no_image() {
    everyone(|place| {
        let Some(root) = root(place, "root") else { return };
        symlink(&root, place.workspace.join("image")).unwrap();
        for name in ["image", "dir:image", "tar:image/bin/busybox"] {
            let said = place.run(&["--image", name, "--", "/bin/true"]);
            assert_eq!(said.code(), Some(125), "{name}: {said:?}");
            assert!(said.stderr.contains("an earlier command in a sandbox"), "{name}: {said:?}");
        }
        // Control: the same directory by its own name.
        assert_eq!(place.run(&["--image", text(&root), "--", "/bin/true"]).code(), Some(0));
        // What is imported is seen by whatever lies on it later, whoever's workspace it came from.
        let tar = place.base.join("private.tar");
        let made =
            outcome(place.host("tar").args(["-cf", text(&tar), "-C", text(&root), "."]), SOON);
        assert_eq!(made.code(), Some(0), "{made:?}");
        symlink(&tar, place.workspace.join("root.tar")).unwrap();
        for name in ["tar:root.tar", "root.tar", "image", "tar:image/../private.tar"] {
            let said = place.says(&["image", "import", name], 1);
            assert!(said.stderr.contains("an earlier command in a sandbox"), "{name}: {said:?}");
            assert!(said.stderr.contains("Remove the link, or name "), "{name}: {said:?}");
        }
        // Controls: by its own name, and by a link to what lies beside it.
        place.says(&["image", "import", text(&tar)], 0);
        fs::copy(&tar, place.workspace.join("own.tar")).unwrap();
        place.give(&place.workspace.join("own.tar"));
        symlink("own.tar", place.workspace.join("beside.tar")).unwrap();
        place.says(&["image", "import", "tar:beside.tar"], 0);
        for name in ["/", "dir:/etc", "/proc", text(&place.state)] {
            let said = place.run(&["--image", name, "--", "/bin/true"]);
            assert_eq!(said.code(), Some(125), "{name}: {said:?}");
        }
    });
}

#[test]
fn every_promise_that_is_attacked_holds_on_an_image() {
    everyone(|place| {
        let Some(root) = root(place, "root") else { return };
        let mut probe = place.cofferdam(&["probe", "--json", "--image", text(&root)]);
        let report = outcome(&mut probe, Duration::from_secs(120)).object();
        let checks = report["checks"].as_array().unwrap();
        let names: Vec<&str> = checks.iter().filter_map(|check| check["name"].as_str()).collect();
        for check in checks {
            // A machine that is busy lets some wait too long, which is no answer.
            let is_late =
                check["verdict"] == "not_tried" && check.to_string().contains("no answer in time");
            assert!(check["verdict"] == "held" || is_late, "as {}: {check}", place.uid());
        }
        for name in ["files.read_outside", "files.read_outside_through_dots", "processes.mount"] {
            let held = |check: &&Value| check["name"] == name && check["verdict"] == "held";
            assert!(checks.iter().any(|check| held(&check)), "{name}: {report}");
        }
        assert!(!names.contains(&"files.write_etc"), "the image is the sandbox's own");
    });
}

#[test]
fn an_image_that_is_none_is_refused_with_a_word_on_what_may_be_named() {
    everyone(|place| {
        place.write("broken.tar", "no tar at all");
        place.write("empty/oci-layout", "{}");
        for (image, says) in [
            ("debian:12", "docker.io/library/debian:12 was not pulled"),
            ("nothing", "docker.io/library/nothing:latest was not pulled"),
            ("nothing.tar", "there is no image"),
            ("./nothing", "there is no image"),
            ("tar:broken.tar", "no tar file"),
            ("oci:empty", "index.json"),
            ("sha256:0123", "there is no image"),
        ] {
            let said = place.run(&["--image", image, "--pull", "never", "--", "/bin/true"]);
            assert!(said.code() == Some(125) && said.stderr.contains(says), "{image}: {said:?}");
            assert!(!said.stderr.contains("read the command line"), "{said:?}");
        }
        // What is wrong with a file is nothing that was typed.
        place.says(&["image", "import", "tar:broken.tar"], 1);
        let error = place.run(&["--entrypoint", "/bin/sh", "--", "true"]);
        assert_eq!(error.code(), Some(125), "{error:?}");
        assert_eq!(fs::read_dir(place.state.join("images/layers")).unwrap().count(), 0);
    });
}
