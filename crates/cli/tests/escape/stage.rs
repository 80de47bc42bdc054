//! Whether an arm can be run here at all. What cannot is said, never passed over.

use crate::arm::{Arm, PYTHON};
use std::process::Stdio;

/// Whether the program does what this needs. Where it does not, that is printed, and it is a
/// failure if the environment expects it to work.
pub(crate) fn is_set(arm: &Arm) -> bool {
    match obstacle(arm) {
        None => true,
        Some(why) => {
            println!("{}: not run: {why}", arm.name);
            let expected = std::env::var("COFFERDAM_EXPECT").unwrap_or_default();
            let expected = expected.split(',').any(|backend| backend == "local");
            assert!(!expected, "{}: expected to run: {why}", arm.name);
            false
        }
    }
}

fn obstacle(arm: &Arm) -> Option<String> {
    if !std::path::Path::new(PYTHON).exists() {
        return Some(format!("there is no {PYTHON}, in which the attacks are written"));
    }
    let version = match arm.cofferdam().arg("--version").output() {
        Ok(version) => version,
        Err(error) => return Some(format!("the program cannot be started: {error}")),
    };
    if !String::from_utf8_lossy(&version.stdout).starts_with("cofferdam") {
        return Some("the program does not say its version".to_owned());
    }
    let workspace = arm.place.join("trial");
    std::fs::create_dir_all(&workspace).unwrap();
    arm.give(&workspace);
    let words = arm.confining(&workspace, &[]);
    let mut command = std::process::Command::new(words.first()?);
    command.args(words.get(1..)?).arg("/bin/true").stdin(Stdio::null());
    let output = match command.env("COFFERDAM_HOME", arm.place.join("state")).output() {
        Ok(output) => output,
        Err(error) => return Some(format!("the program cannot be started: {error}")),
    };
    let _ = std::fs::remove_dir(&workspace);
    if output.status.success() {
        return None;
    }
    // A refusal is an obstacle; anything else is for the attacks to find out.
    let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    (output.status.code() == Some(125)).then_some(text)
}
