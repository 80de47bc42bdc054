//! What an image says, and what of it a sandbox does.

use super::USER_ID;
use crate::view::{ImageUpper, ImageView, Shown};
use cofferdam_core::{Spec, User};
use cofferdam_wire::plan::{Layer, Op, Overlay, Upper};

/// The permission bits of the root, as everywhere.
const ROOT_MODE: u32 = 0o755;

/// The step that makes the image's layers the root.
pub(super) fn layers(view: &ImageView) -> Op {
    let layer = |shown: &Shown| Layer {
        source: shown.source.clone(),
        owner: shown.owner,
        identity: shown.identity,
    };
    Op::Overlay(Overlay {
        lower: view.layers.iter().map(layer).collect(),
        upper: match &view.upper {
            ImageUpper::Private => Upper::Private { mode: ROOT_MODE },
            ImageUpper::Kept(kept) => Upper::Kept(layer(kept)),
        },
        path: "/".to_owned(),
        without: Vec::new(),
    })
}

/// Why there is that step.
pub(super) fn why(view: &ImageView) -> String {
    let lands = match &view.upper {
        ImageUpper::Private => "what is written to it is private and limited by --disk",
        ImageUpper::Kept(_) => "what is written to it stays with the session",
    };
    format!("the root is image {}, of which the host's has no part; {lands}", view.name)
}

/// Where the image wants commands to start, if it says so.
pub(super) fn cwd(spec: &Spec) -> Option<String> {
    spec.image.as_ref()?.run.start()
}

/// What of an image's wishes a sandbox does otherwise; sentences for people.
pub(super) fn notes(spec: &Spec) -> Vec<String> {
    let Some(image) = &spec.image else { return Vec::new() };
    let mut notes = Vec::new();
    let wished = image.run.user.as_deref().unwrap_or_default();
    match spec.user {
        User::Root if image.run.is_root() || wished.is_empty() => {}
        User::Ordinary if wished.is_empty() => notes.push(
            "the image expects its root, and commands are an ordinary user; --user root makes them \
             its root"
                .to_owned(),
        ),
        User::Ordinary if image.run.ids.is_some() => notes.push(format!(
            "commands are the image's user {wished}, and all files of the image are that one's own"
        )),
        User::Ordinary if image.run.unknown_user().is_some() => notes.push(format!(
            "the image wants user {wished}, who is in none of its lists: commands are user {USER_ID}"
        )),
        User::Root | User::Ordinary => notes.push(format!(
            "the image wants user {wished}, and commands are another one, as you asked"
        )),
    }
    if let (Some(wished), None) = (&image.run.cwd, cwd(spec)) {
        notes.push(match wished.trim_matches('/') {
            "" => "the image's working directory is /, which most images have: commands start where they \
                   do without one"
                .to_owned(),
            _ => "the image's working directory is no plain path and is not used".to_owned(),
        });
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::{Caller, Image, ImageRun, Workspace};

    fn spec(user: Option<&str>, cwd: &str) -> Spec {
        let text = |text: &str| text.to_owned();
        let run = ImageRun { user: user.map(text), cwd: Some(text(cwd)), ..ImageRun::default() };
        let image = Image { id: "i".into(), name: "n".into(), layers: Vec::new(), hold: None, run };
        Spec { image: Some(image), ..Spec::new(Workspace::Private, Caller::default()) }
    }

    #[test]
    fn a_working_directory_that_is_not_used_is_told() {
        for (path, used) in [("/app", true), ("/a//b/", true), ("/", false), ("/./a", false)] {
            let spec = spec(None, path);
            assert_eq!(cwd(&spec).is_some(), used, "{path:?}");
            let told = notes(&spec).iter().any(|note| note.contains("working directory"));
            assert_eq!(told, !used, "{path:?}");
        }
    }

    #[test]
    fn another_user_than_the_one_there_is_is_told() {
        let says = |user: Option<&str>, own: User| {
            let spec = Spec { user: own, ..spec(user, "/app") };
            notes(&spec).join(" ")
        };
        assert!(says(Some("node"), User::Ordinary).contains("in none of its lists"));
        assert!(says(Some("node"), User::Root).contains("as you asked"));
        assert!(says(Some("0"), User::Ordinary).contains("wants user 0"));
        assert!(says(None, User::Ordinary).contains("--user root"));
        assert_eq!(says(Some("root"), User::Root) + &says(None, User::Root), "");
    }
}
