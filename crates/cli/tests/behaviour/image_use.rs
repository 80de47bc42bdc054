//! Which images are used, and which spellings of a path name one.

use crate::images::{busybox, layout, system, text};
use crate::place::{Place, everyone};
use serde_json::{Value, json};
use std::fs;

/// What is said of each image, by the last part of its name.
fn used(place: &Place) -> Vec<(String, bool)> {
    let listed = place.says(&["image", "ls", "--json"], 0).object();
    let one = |image: &Value| {
        let name = image["names"][0].as_str().unwrap();
        let name = name.rsplit('/').next().unwrap().to_owned();
        (name, image["in_use"].as_bool().unwrap())
    };
    let mut all: Vec<_> = listed["images"].as_array().unwrap().iter().map(one).collect();
    all.sort();
    all
}

#[test]
fn a_sandbox_uses_the_image_that_it_was_made_from_and_no_other_with_its_layers() {
    everyone(|place| {
        let Some(busybox) = busybox() else { return };
        let layers = json!([system(busybox), [{"path": "above"}]]);
        let below = layout(place, "below", &json!({"layers": [layers[0]]}));
        let above = layout(place, "above", &json!({"layers": layers}));
        let twin = layout(place, "twin", &json!({"layers": layers, "config": {"Cmd": ["other"]}}));
        for image in [&below, &twin] {
            place.says(&["image", "import", image], 0);
        }
        place.says(&["create", "--name", "s", "--image", &above], 0);
        let is_used = |name: &str, used: bool| (name.to_owned(), used);
        let all = [is_used("above", true), is_used("below", false), is_used("twin", false)];
        assert_eq!(used(place), all);
        let removed = place.says(&["image", "gc", "--json"], 0).object();
        assert_eq!(removed["images"].as_array().map(Vec::len), Some(2), "{removed}");
        assert_eq!(removed["layers"], json!([]), "its own layers stay");
        assert_eq!(used(place), [is_used("above", true)]);
        place.says(&["exec", "s", "--", "/bin/ls", "/above"], 0);
        place.says(&["rm", "s"], 0);
        place.says(&["image", "gc"], 0);
        assert_eq!(fs::read_dir(place.state.join("images/layers")).unwrap().count(), 0);
    });
}

#[test]
fn an_image_of_a_path_is_found_by_every_spelling_of_it() {
    everyone(|place| {
        let image = layout(place, "oci", &json!({"layers": [[{"path": "a"}]]}));
        let beside = |name: &str| format!("oci:../{name}/../oci/.");
        let at = place.workspace.file_name().and_then(|name| name.to_str()).unwrap();
        let imported = place.says(&["image", "import", &beside(at)], 0).text();
        let whole = place.says(&["image", "inspect", &image, "--json"], 0).object();
        assert_eq!(
            (whole["id"].as_str().unwrap(), &whole["names"]),
            (imported.trim(), &json!([image]))
        );
        place.says(&["image", "inspect", "oci:../oci/"], 0);
        // One that was listed in another spelling is found by that.
        let record = place.state.join(format!("images/records/{}.json", &imported.trim()[7..]));
        let other = format!("oci:{}/./oci", text(&place.base));
        let text = fs::read_to_string(&record).unwrap().replace(&image, &other);
        fs::write(&record, text).unwrap();
        place.says(&["image", "rm", &image], 1);
        place.says(&["image", "rm", &other], 0);
    });
}
