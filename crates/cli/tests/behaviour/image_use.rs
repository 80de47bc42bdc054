//! Which images are used.

use crate::images::{busybox, layout, system};
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
