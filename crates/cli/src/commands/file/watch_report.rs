//! What `cofferdam file watch` prints for people.

use cofferdam_core::ByteString;
use cofferdam_core::files::FileEvent;

/// An event for people.
pub(super) fn line(event: &FileEvent) -> String {
    let shown = |path: &ByteString, is_directory: bool| match (path.as_bytes(), is_directory) {
        (b"", _) => ".".to_owned(),
        (_, true) => format!("{path}/"),
        (_, false) => path.to_string(),
    };
    let what = match event {
        FileEvent::Ready { directories: 1 } => "1 directory is watched".to_owned(),
        FileEvent::Ready { directories } => format!("{directories} directories are watched"),
        FileEvent::Overflow => "some events were lost; look at everything again".to_owned(),
        FileEvent::Modified { path } => shown(path, false),
        FileEvent::Created { path, directory }
        | FileEvent::Attributes { path, directory }
        | FileEvent::Removed { path, directory } => shown(path, *directory),
        FileEvent::Renamed { from, to, directory } => {
            format!("{} -> {}", shown(from, *directory), shown(to, *directory))
        }
        FileEvent::Unwatched { path, failure } => {
            format!("{}: {}", shown(path, true), failure.detail)
        }
    };
    format!("{:<10}  {what}", event.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_session::objects::FileEventReport;

    #[test]
    fn an_event_is_a_line_for_people_and_an_object_for_programs() {
        let check = |event: FileEvent, said: &str, json: &str| {
            assert_eq!(line(&event), said);
            let object = serde_json::to_string(&FileEventReport::new("s", &event)).unwrap();
            assert_eq!(object, format!("{{\"session\":\"s\",{json}}}"));
        };
        check(
            FileEvent::Created { path: "a".into(), directory: true },
            "created     a/",
            r#""event":"created","path":"a","directory":true"#,
        );
        check(
            FileEvent::Renamed { from: vec![0xff].into(), to: "b".into(), directory: false },
            "renamed     \u{fffd} -> b",
            r#""event":"renamed","path":"b","from_base64":"/w==","directory":false"#,
        );
        check(
            FileEvent::Ready { directories: 2 },
            "ready       2 directories are watched",
            r#""event":"ready","directories":2"#,
        );
        check(
            FileEvent::Attributes { path: ByteString::default(), directory: true },
            "attributes  .",
            r#""event":"attributes","path":"","directory":true"#,
        );
    }
}
