//! The words of an image around those of a command.

use super::execs::ExecWish;
use cofferdam_core::{Error, ErrorKind, ExecOrder, Image, Result};
use cofferdam_session::objects::StartWish;
use std::ffi::OsString;

/// Puts the words of the image around those of the command, where that is asked for.
pub(super) fn lead(wish: &ExecWish, order: &mut ExecOrder, image: Option<&Image>) -> Result<()> {
    let Some(StartWish { entrypoint }) = &wish.start else { return Ok(()) };
    let usage = |what: &str, hint: &str| Err(Error::new(ErrorKind::Usage, what).hint(hint));
    let Some(image) = image else {
        let what = "an entry point is the start of an image, and there is none";
        return usage(what, "Leave start and --entrypoint out, or name an image.");
    };
    let lead: Option<Vec<OsString>> = entrypoint.as_ref().map(|program| {
        Some(OsString::from(program)).filter(|program| !program.is_empty()).into_iter().collect()
    });
    let words = image.run.argv(lead.as_deref(), &order.command.argv);
    if words.first().is_none_or(|first| first.is_empty()) {
        let what = "the image names no command, and none is given";
        return usage(what, "Give one in argv.");
    }
    order.command.argv = words;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::ImageRun;
    use cofferdam_session::Session;

    fn led(entrypoint: Option<&str>, argv: &[&str], run: ImageRun) -> Result<Vec<OsString>> {
        let entrypoint = entrypoint.map(str::to_owned);
        let wish = ExecWish { start: Some(StartWish { entrypoint }), ..ExecWish::default() };
        let mut order = Session::order(argv.iter().copied()).unwrap();
        let image = Image { id: "i".into(), name: "i".into(), layers: Vec::new(), hold: None, run };
        lead(&wish, &mut order, Some(&image))?;
        assert_eq!(lead(&wish, &mut order, None).unwrap_err().kind, ErrorKind::Usage);
        Ok(order.command.argv)
    }

    #[test]
    fn the_words_of_an_image_lead_a_command() {
        let run = || ImageRun {
            entrypoint: vec!["e".into()],
            command: vec!["c".into()],
            ..ImageRun::default()
        };
        assert_eq!(led(None, &["x"], run()).unwrap(), ["e", "x"]);
        assert_eq!(led(None, &[], run()).unwrap(), ["e", "c"]);
        assert_eq!(led(Some("p"), &["x"], run()).unwrap(), ["p", "x"]);
        assert_eq!(led(Some("p"), &[], run()).unwrap(), ["p"]);
        assert_eq!(led(Some(""), &["x"], run()).unwrap(), ["x"]);
        assert_eq!(led(Some(""), &[], run()).unwrap_err().kind, ErrorKind::Usage);
        assert_eq!(led(None, &[], ImageRun::default()).unwrap_err().kind, ErrorKind::Usage);
    }
}
