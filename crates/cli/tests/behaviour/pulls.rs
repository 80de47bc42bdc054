//! Images from a registry on this machine: one of the tests', and the one that everybody runs.

use crate::images::{busybox, layout, system, text};
use crate::place::{PYTHON, Place, SOON, Said, ended, everyone, outcome, skipped, started, until};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

/// What only the registry may hear, alone and as it is kept with the name `me`.
const PASSWORD: &str = "canary-of-a-password";
const KEPT: &str = "bWU6Y2FuYXJ5LW9mLWEtcGFzc3dvcmQ=";

/// A server that ends with the test.
struct Served(Child, String);

impl Served {
    /// The layout that a reference names, served with these options.
    fn new(place: &Place, reference: &str, options: &[&str]) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/behaviour/registry.py");
        let script = fs::read_to_string(script).unwrap();
        let path = reference.strip_prefix("oci:").unwrap();
        let mut server = place.host(PYTHON);
        server.args(["-c", &script, path]).args(options).stdout(Stdio::piped());
        let mut server = started(&mut server);
        let mut port = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self(server, port.trim().to_owned())
    }

    fn name(&self, rest: &str) -> String {
        format!("localhost:{}/{rest}", self.1)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An image with a system, and how it wants to be run.
fn image(place: &Place) -> Option<String> {
    let layers = [system(busybox()?), vec![json!({"path": "etc/pulled", "content": "yes\n"})]];
    Some(layout(place, "oci", &json!({"layers": layers, "config": {"Env": ["PATH=/bin"]}})))
}

/// The lines that a pull tells.
fn pulled(place: &Place, name: &str) -> Vec<Value> {
    let said = place.says(&["image", "pull", name, "--json"], 0);
    let lines: Vec<Value> =
        said.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (image, events) = lines.split_last().unwrap();
    crate::schema::is_valid(place, "image", image);
    events.iter().for_each(|event| crate::schema::is_valid(place, "image-event", event));
    lines
}

#[test]
fn an_image_is_pulled_with_the_callers_credentials_and_nobody_else_hears_them() {
    everyone(|place| {
        let Some(reference) = image(place) else { return };
        let log = place.base.join("log");
        let (basic, log_to) = (format!("basic=me:{PASSWORD}"), format!("log={}", log.display()));
        let server = Served::new(place, &reference, &[&basic, &log_to]);
        let name = server.name("a/b:v1");
        let refused = place.says(&["image", "pull", &name], 1);
        assert!(refused.stderr.contains("wants credentials"), "{refused:?}");
        assert!(refused.stderr.contains(".docker/config.json is not there"), "{refused:?}");
        let auths = format!(r#"{{"auths":{{"localhost:{}":{{"auth":"{KEPT}"}}}}}}"#, server.1);
        let home = place.base.join("home");
        fs::write(home.join("auth.json"), &auths).unwrap();
        place.give(&home.join("auth.json"));
        let with = |words: &[&str]| -> Said {
            outcome(place.cofferdam(words).env("REGISTRY_AUTH_FILE", home.join("auth.json")), SOON)
        };
        let said = with(&["image", "pull", &name, "--json"]);
        assert_eq!(said.code(), Some(0), "{said:?}");
        let lines: Vec<Value> =
            said.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["event"], "resolved");
        let shown = lines.last().unwrap();
        let digest = shown["pulled"][0]["digest"].as_str().unwrap();
        assert_eq!(
            (&lines[0]["digest"], &shown["pulled"][0]["tag"]),
            (&json!(digest), &json!("v1"))
        );
        // From here on the registry is not asked, by name and by digest.
        let asked = fs::read_to_string(&log).unwrap().lines().count();
        let line = "cat /etc/pulled; env; cat /proc/*/environ /proc/*/cmdline; \
                    grep -rE 'canar[y]-of|bWU6[Y]2Fu' /etc /home /tmp /var /workspace; true";
        let ran = with(&["run", "--image", &name, "--", "sh", "-c", line]);
        assert!(ran.code() == Some(0) && ran.text().starts_with("yes\n"), "{ran:?}");
        let pinned = format!("{}@{digest}", name.rsplit_once(':').unwrap().0);
        let by_digest = place.run(&["--image", &pinned, "--", "cat", "/etc/pulled"]);
        assert_eq!(by_digest.text(), "yes\n");
        assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), asked);
        let listed = place.says(&["image", "ls"], 0);
        assert!(listed.text().contains(&digest[..19]) && listed.text().contains(&name));
        let inspected = place.says(&["image", "inspect", &name], 0);
        assert!(inspected.text().contains(&format!("pulled: {name}, {digest}")), "{inspected:?}");
        // It is asked again only where that is said, and cannot be without credentials.
        let again = place.run(&["--image", &name, "--pull", "always", "--", "true"]);
        assert!(again.code() == Some(125) && again.stderr.contains("wants credentials"));
        let said = [&refused, &said, &ran, &again];
        for secret in [PASSWORD, KEPT] {
            let is_told =
                |said: &&Said| said.text().contains(secret) || said.stderr.contains(secret);
            assert!(!said.iter().any(is_told));
            let kept = outcome(place.host("grep").args(["-rqa", secret]).arg(&place.state), SOON);
            assert_eq!(kept.code(), Some(1), "{kept:?}");
        }
        // The control: it is found where it is.
        let kept = outcome(place.host("grep").args(["-rqa", KEPT]).arg(&home), SOON);
        assert_eq!(kept.code(), Some(0));
    });
}

#[test]
fn an_image_is_pulled_by_the_first_run_or_not_at_all() {
    everyone(|place| {
        let Some(reference) = image(place) else { return };
        let server = Served::new(place, &reference, &[]);
        let name = server.name("x:v1");
        let never = place.run(&["--image", &name, "--pull", "never", "--", "true"]);
        assert!(never.code() == Some(125) && never.stderr.contains("image pull"), "{never:?}");
        assert_eq!(place.run(&["--image", &name, "--", "cat", "/etc/pulled"]).text(), "yes\n");
        place.says(&["create", "--name", "s", "--image", &name, "--pull", "never"], 0);
        assert_eq!(place.says(&["exec", "s", "--", "cat", "/etc/pulled"], 0).text(), "yes\n");
        place.says(&["rm", "s"], 0);
        let none = place.run(&["--image", &server.name("x:none"), "--", "true"]);
        assert!(none.code() == Some(125) && none.stderr.contains("x:none"), "{none:?}");
        // A directory that a command left does not stand before the name of an image.
        let planted = place.workspace.join("debian:12");
        fs::create_dir(&planted).unwrap();
        let said = place.run(&["--image", "debian:12", "--pull", "never", "--", "true"]);
        assert!(said.stderr.contains("docker.io/library/debian:12 was not pulled"), "{said:?}");
        let words = ["wrap", "--image", &name, "--pull", "always", "--", "true"];
        let argv = place.says(&words, 0).object()["argv"].clone();
        assert!(argv.as_array().unwrap().contains(&json!("--pull=always")), "{argv}");
    });
}

#[test]
fn a_pull_that_is_interrupted_goes_on_and_leaves_nothing_else() {
    everyone(|place| {
        let Some(reference) = image(place) else { return };
        let server = Served::new(place, &reference, &["stalls"]);
        let name = server.name("x:v1");
        let mut pull = place.cofferdam(&["image", "pull", &name]);
        let pull = started(pull.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let staging = place.state.join("images/staging");
        let has_come = || {
            let all = fs::read_dir(&staging).into_iter().flatten().flatten();
            let bytes =
                all.map(|one| fs::metadata(one.path().join("packed")).map_or(0, |m| m.len()));
            (bytes.max().unwrap_or(0) > 60_000).then_some(())
        };
        until(SOON, has_come).unwrap();
        let id = rustix::process::Pid::from_child(&pull);
        rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
        assert_eq!(ended(pull, SOON).code(), None);
        // Another start removes what a crash left, and not this.
        place.says(&["image", "ls"], 0);
        assert!(has_come().is_some());
        let lines = pulled(place, &name);
        let resumed: u64 = lines.iter().filter_map(|line| line["resumed_bytes"].as_u64()).sum();
        assert!(resumed > 60_000, "{lines:?}");
        assert_eq!(place.run(&["--image", &name, "--", "cat", "/etc/pulled"]).text(), "yes\n");
        assert_eq!(fs::read_dir(&staging).unwrap().count(), 0);
    });
}

#[test]
fn a_terminal_shows_how_far_a_pull_is_and_a_file_hears_the_end_alone() {
    everyone(|place| {
        let Some(reference) = image(place) else { return };
        if !Path::new("/usr/bin/script").exists() {
            return skipped("script", "the program is not installed");
        }
        let server = Served::new(place, &reference, &["slow"]);
        let name = server.name("x:v1");
        let line = format!("{} image pull {name}", place.program());
        let mut shown = place.host("/usr/bin/script");
        let shown = outcome(shown.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm"), SOON);
        assert_eq!(shown.code(), Some(0), "{shown:?}");
        assert!(shown.text().contains("downloading 2 layers"), "{shown:?}");
        assert!(shown.text().contains(&format!("{name} is sha256:")), "{shown:?}");
        place.says(&["image", "gc"], 0);
        let said = place.says(&["image", "pull", &name], 0);
        assert!(said.text().starts_with("sha256:") && said.text().lines().count() == 1, "{said:?}");
        assert_eq!(said.stderr.lines().count(), 1, "{said:?}");
        // Whoever pulls it by a run hears of it in the same way as of anything else.
        place.says(&["image", "gc"], 0);
        let said = place.run(&["--json", "--image", &name, "--", "cat", "/etc/pulled"]);
        assert_eq!(said.object()["stdout"], "yes\n");
        let told: Vec<Value> =
            said.stderr.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let of_image = |event: &&Value| event["event"] == "progress" && event["doing"] == "image";
        let told = told.iter().rfind(of_image).unwrap_or_else(|| panic!("{said:?}"));
        assert!(told["unit"] == "bytes" && told["total"].as_u64() > Some(0), "{told}");
    });
}

#[test]
fn a_registry_is_trusted_by_the_authorities_of_the_system() {
    everyone(|place| {
        let Some(reference) = image(place) else { return };
        let made = "set -e; key='-newkey rsa:2048 -nodes -days 2'
            openssl req -x509 $key -subj /CN=authority -keyout own.pem -out authority.pem
            openssl req $key -subj /CN=localhost -keyout key.pem -out wish.pem
            echo subjectAltName=DNS:localhost >name
            openssl x509 -req -in wish.pem -CA authority.pem -CAkey own.pem -CAcreateserial \
                -days 2 -extfile name -out cert.pem";
        let made = outcome(place.host("sh").args(["-c", made]), Duration::from_secs(60));
        if made.code() != Some(0) {
            return skipped("openssl", "no certificate could be made");
        }
        let (certificate, key) =
            (place.workspace.join("cert.pem"), place.workspace.join("key.pem"));
        let tls = format!("tls={},{}", certificate.display(), key.display());
        let server = Served::new(place, &reference, &[&tls]);
        let name = server.name("x:v1");
        let refused = place.says(&["image", "pull", &name], 1);
        assert!(refused.stderr.contains("is not trusted: UnknownIssuer"), "{refused:?}");
        assert!(refused.stderr.contains("SSL_CERT_FILE"), "{refused:?}");
        let mut pull = place.cofferdam(&["image", "pull", &name, "--quiet"]);
        let said = outcome(pull.env("SSL_CERT_FILE", place.workspace.join("authority.pem")), SOON);
        assert_eq!((said.code(), said.stderr.as_str()), (Some(0), ""), "{said:?}");
        assert_eq!(place.run(&["--image", &name, "--", "cat", "/etc/pulled"]).text(), "yes\n");
    });
}

#[test]
fn a_registry_elsewhere_is_reached_by_the_proxy_or_the_error_says_what_is_missing() {
    everyone(|place| {
        let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", proxy.local_addr().unwrap());
        let asked = std::thread::spawn(move || {
            let mut line = String::new();
            let mut stream = proxy.accept().unwrap().0;
            BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
            let _ = stream.write_all(b"HTTP/1.1 502 X\r\ncontent-length: 0\r\n\r\n");
            line
        });
        let mut pull = place.cofferdam(&["image", "pull", "registry.invalid/x:v1"]);
        let said = outcome(pull.env("HTTPS_PROXY", &address).env_remove("NO_PROXY"), SOON);
        assert!(said.code() == Some(1) && said.stderr.contains("HTTPS_PROXY"), "{said:?}");
        assert!(asked.join().unwrap().starts_with("CONNECT registry.invalid:443 "));
        // Where there is no network, no name is resolved.
        let mut alone = place.host("unshare");
        alone.args(["-r", "-n", place.program(), "image", "pull", "registry.invalid/x:v1"]);
        let said = outcome(alone.env_remove("HTTPS_PROXY"), Duration::from_secs(60));
        if said.stderr.contains("unshare") {
            return skipped("user", "no namespace without a network could be made");
        }
        assert!(said.code() == Some(1) && said.stderr.contains("was not resolved"), "{said:?}");
    });
}

#[test]
fn what_skopeo_pushes_to_the_registry_of_the_distribution_is_pulled() {
    everyone(|place| {
        let programs = ["/usr/bin/skopeo", "/usr/bin/docker-registry"];
        if let Some(missing) = programs.iter().find(|path| !Path::new(path).exists()) {
            return skipped("registry", &format!("{missing} is not installed"));
        }
        let Some(reference) = image(place) else { return };
        // Nobody holds the port between the two, but nobody else asks for it either.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\n\
             http: {{addr: '127.0.0.1:{port}'}}\n",
            place.base.join("home/registry").display()
        );
        let config = place.write("registry.yml", &config);
        let mut server = place.host("/usr/bin/docker-registry");
        server.args(["serve", text(&config)]).stdout(Stdio::null()).stderr(Stdio::null());
        let server = Served(started(&mut server), port.to_string());
        until(SOON, || TcpStream::connect(("127.0.0.1", port)).ok()).unwrap();
        let to = format!("docker://127.0.0.1:{port}/team/tool:v1");
        let mut push = place.host("/usr/bin/skopeo");
        push.args(["--insecure-policy", "copy", "--dest-tls-verify=false"])
            .arg(&reference)
            .arg(&to);
        let pushed = outcome(push.env("XDG_RUNTIME_DIR", place.base.join("home")), SOON);
        assert_eq!(pushed.code(), Some(0), "{pushed:?}");
        let name = server.name("team/tool:v1");
        let lines = pulled(place, &name);
        let digest = lines.last().unwrap()["pulled"][0]["digest"].as_str().unwrap().to_owned();
        assert_eq!(place.run(&["--image", &name, "--", "cat", "/etc/pulled"]).text(), "yes\n");
        // Pinned, from nothing: the layers come by digest too.
        place.says(&["image", "gc"], 0);
        let pinned = server.name(&format!("team/tool@{digest}"));
        assert_eq!(place.run(&["--image", &pinned, "--", "cat", "/etc/pulled"]).text(), "yes\n");
        let other = server.name(&format!("team/tool@sha256:{}", "0".repeat(64)));
        let none = place.run(&["--image", &other, "--", "true"]);
        assert!(none.code() == Some(125) && none.stderr.contains("has no image"), "{none:?}");
    });
}
