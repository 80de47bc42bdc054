//! Images that requests lie on, and those that they cannot.

use crate::images::{busybox, layout, system};
use crate::place::everyone;
use crate::serving::{Serving, exec, key};
use serde_json::json;

#[test]
fn a_request_lies_on_an_allowed_image_and_reads_no_file_of_the_host_by_naming_it() {
    everyone(|place| {
        let Some(busybox) = busybox() else { return };
        let image = json!({ "layers": [system(busybox)] });
        let reference = layout(place, "layout", &image);
        // A path is refused at the start, and says what to do.
        let refused =
            place.says(&["serve", "--listen", "127.0.0.1:0", "--allow-image", &reference], 2);
        assert!(refused.stderr.contains("image import"), "{}", refused.stderr);
        let id = place.says(&["image", "import", &reference, "--json"], 0).text();
        let id = id.lines().rev().find_map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            line["id"].as_str().map(str::to_owned)
        });
        let id = id.unwrap();
        let serving = Serving::start(place, &["--allow-image", &id]);
        let key = key(place, "a");
        let wish = |image: &str| json!({ "image": image }).to_string();
        let made = serving.ask(&key, "PUT /v1/sandboxes/s", &wish(&id));
        assert_eq!(made.status, 201, "{}", made.body);
        let listed = exec(&serving, &key, "s", "ls /usr /bin/busybox; id -u");
        let wait = format!("GET /v1/sandboxes/s/execs/{listed}");
        assert_eq!(serving.ask(&key, &format!("{wait}/wait"), "").status, 200);
        let out = serving.ask(&key, &format!("{wait}/output?stream=stdout"), "").body;
        assert!(out.contains("/bin/busybox"), "{out}");
        // The control: without it the host's own directories are there.
        let run = |sandbox: serde_json::Value| {
            let body = json!({ "sandbox": sandbox, "exec": { "argv": ["/bin/ls", "/usr"] } });
            serving.ask(&key, "POST /v1/run", &body.to_string())
        };
        assert_eq!(run(json!({})).json()["exit_code"], 0);
        assert_ne!(run(json!({ "image": id })).json()["exit_code"], 0);
        for other in [reference.as_str(), "/", "dir:/", "tar:/etc/passwd", "debian:12"] {
            let told = run(json!({ "image": other }));
            assert_eq!(told.status, 403, "{other}: {}", told.body);
        }
        serving.end(place, "-TERM");
    });
}
