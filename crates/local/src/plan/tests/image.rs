//! Plans of sandboxes that lie on an image.

use super::*;
use crate::plan::opening;
use crate::view::{ImageUpper, ImageView};
use cofferdam_core::{Image, ImageLayer, ImageRun};
use cofferdam_wire::plan::{Namespace, Upper};

/// What is seen of a spec's image.
pub(super) fn seen(spec: &Spec, owner: Owner) -> Option<ImageView> {
    let image = spec.image.as_ref()?;
    let layer = shown("/state/layers/top/tree", Access::ReadOnly, owner, "a layer");
    let (name, upper) = (image.name.clone(), ImageUpper::Private);
    Some(ImageView { name, layers: vec![layer], upper })
}

fn on_image() -> Spec {
    let run = ImageRun {
        env: vec![("PATH".into(), "/app/bin".into()), ("BAD=".into(), "x".into())],
        cwd: Some("/app".into()),
        ..ImageRun::default()
    };
    let layer = ImageLayer { tree: "/state/layers/top/tree".into(), hold: None };
    let (id, name) = ("sha256:1".to_owned(), "oci:/app".to_owned());
    let image = Image { id, name, layers: vec![layer], hold: None, run };
    Spec { image: Some(image), ..wish(Profile::NoNetwork) }
}

#[test]
fn a_plan_with_an_image_is_as_recorded_and_shows_nothing_of_the_host() {
    for (who, uid) in [("user", 1001), ("root", 0)] {
        let (spec, facts) = (on_image(), fake::host(uid));
        let planned = made(&spec, &facts, HELD).unwrap();
        check_recorded(&format!("image.{who}.namespaces.txt"), &snapshot(&spec, &planned));
        let of_host =
            |bind: &&Bind| ["/usr", "/bin", "/etc"].iter().any(|p| bind.path.starts_with(p));
        assert_eq!(binds(&planned).into_iter().find(of_host), None);
        // Control: without an image the host's programs are shown.
        let plain = made(&wish(Profile::NoNetwork), &facts, HELD).unwrap();
        assert!(binds(&plain).into_iter().any(|bind| of_host(&bind)));
        assert!(split(&planned, Ahead::Nothing).is_none(), "no template has layers");
        assert!(opening(&spec, &facts, &ids()).begins(&planned.plan));
        assert!(planned.plan.namespaces.contains(&Namespace::User));
    }
}

#[test]
fn the_image_is_the_root_before_anything_is_made_in_it() {
    let planned = made(&on_image(), &fake::host(0), HELD).unwrap();
    let [overlay] = overlays(&planned)[..] else { panic!("one overlay") };
    assert_eq!((overlay.path.as_str(), overlay.lower.len()), ("/", 1));
    assert_eq!(overlay.upper, Upper::Private { mode: 0o755 });
    let root = position(&planned, |op| matches!(op, Op::Overlay(_)));
    let first = position(&planned, |op| matches!(op, Op::Private { .. }));
    let space = |op: &Op| matches!(op, Op::Private { path, .. } if path == Overlay::SPACE);
    assert_eq!((first, position(&planned, space)), (root + 1, root + 1), "it covers the space");
    let devices = position(&planned, |op| matches!(op, Op::Way { path } if path == "/dev"));
    let null = |op: &Op| matches!(op, Op::Bind(bind) if bind.path == "/dev/null");
    assert!(devices < position(&planned, null), "over what the image has there");
    assert!(position(&planned, null) < position(&planned, |op| *op == Op::Pivot));
    assert!(landlock(&planned).write.contains(&"/".to_owned()));
}

#[test]
fn an_image_stands_between_defaults_and_what_was_asked_for() {
    let mut spec = on_image();
    let value = |spec: &Spec, name: &str| {
        let planned = made(spec, &fake::host(1001), HELD).unwrap();
        planned.env.get(std::ffi::OsStr::new(name)).map(|v| v.to_str().unwrap().to_owned())
    };
    assert_eq!(value(&spec, "PATH").as_deref(), Some("/app/bin"));
    assert_eq!(value(&spec, "BAD="), None);
    assert_eq!(made(&spec, &fake::host(1001), HELD).unwrap().cwd, "/app");
    spec.env.insert("PATH".into(), "/mine".into());
    assert_eq!(value(&spec, "PATH").as_deref(), Some("/mine"));
    spec.image = None;
    assert_eq!(made(&spec, &fake::host(1001), HELD).unwrap().cwd, PROJECT);
}

#[test]
fn without_namespaces_an_image_is_refused() {
    let error = made(&on_image(), &forbidden(1001), HELD).unwrap_err();
    assert_eq!(error.kind, cofferdam_core::ErrorKind::Unenforceable);
    assert!(made(&wish(Profile::NoNetwork), &forbidden(1001), HELD).is_ok(), "the control");
}
