//! Bytes from inside are hostile: whatever they are, the host understands them or refuses them.

#[path = "hostile/frames.rs"]
mod frames;
#[path = "hostile/messages.rs"]
mod messages;

use cofferdam_wire::ByteString;
use cofferdam_wire::frame::{HEADER_BYTES, Header, Kind, encode};
use proptest::prelude::*;

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Message), Just(Kind::Data), Just(Kind::Credit), Just(Kind::End)]
}

/// Frames that are mostly right, so that a test gets past the first header.
fn mostly_frames() -> impl Strategy<Value = Vec<u8>> {
    let frame = (any::<u32>(), kind(), prop::collection::vec(any::<u8>(), 0..200));
    let frames = prop::collection::vec(frame, 0..8);
    (frames, prop::collection::vec(any::<u8>(), 0..30)).prop_map(|(frames, rest)| {
        let mut bytes = Vec::new();
        for (channel, kind, body) in frames {
            assert!(encode(channel, kind, &body, &mut bytes).is_ok());
        }
        bytes.extend(rest);
        bytes
    })
}

/// Text that looks like a message, with a word or a number changed here and there.
fn mostly_messages() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("Spawn"),
        Just("Prove"),
        Just("Ping"),
        Just("Hello"),
        Just("SetupFailed"),
        Just("Started"),
        Just("NotStarted"),
        Just("Ended"),
        Just("Stopped"),
        Just("Egress"),
        Just("Signal"),
        Just("Resize"),
        Just("Kill"),
        Just("Ready"),
        Just("Refused"),
        Just("Read"),
        Just("Written"),
        Just("Entries"),
        Just("Listed"),
        Just("Failed"),
        Just("x"),
        Just("")
    ];
    let value = prop_oneof![
        Just("{}".to_owned()),
        Just("null".to_owned()),
        Just("{\"size\":1,\"bytes\":1,\"sha256\":null,\"mode\":1,\"modified_ms\":-1}".to_owned()),
        Just("{\"why\":\"Io\",\"detail\":\"\",\"errno\":5}".to_owned()),
        Just("[{\"path\":\"a\",\"kind\":\"File\",\"size\":0}]".to_owned()),
        Just("{\"pid\":2}".to_owned()),
        Just("{\"host\":\"a\\u0000b\",\"port\":443}".to_owned()),
        Just("{\"rows\":24,\"columns\":80}".to_owned()),
        any::<i64>().prop_map(|n| n.to_string()),
        ".{0,20}".prop_map(|text| format!("{text:?}")),
        Just("[".repeat(100_000)),
    ];
    (word, value).prop_map(|(word, value)| format!("{{\"{word}\":{value}}}"))
}

proptest! {
    #[test]
    fn any_bytes_are_frames_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..2000), piece in 1_usize..100,
    ) {
        frames::stream(&bytes, piece);
    }

    #[test]
    fn frames_with_rubbish_behind_are_frames_or_refused(
        bytes in mostly_frames(), piece in 1_usize..100,
    ) {
        frames::stream(&bytes, piece);
    }

    #[test]
    fn any_nine_bytes_are_a_header_or_refused(bytes in any::<[u8; HEADER_BYTES]>()) {
        if let Ok(header) = Header::decode(bytes) {
            prop_assert_eq!(header.encode(), Ok(bytes));
        }
    }

    #[test]
    fn any_bytes_are_a_message_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..300), text in mostly_messages(),
    ) {
        messages::message(&bytes);
        messages::message(text.as_bytes());
    }

    #[test]
    fn any_bytes_survive_as_a_string(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let value = ByteString::from(bytes);
        let text = serde_json::to_string(&value).ok();
        let read = text.and_then(|text| serde_json::from_str::<ByteString>(&text).ok());
        prop_assert_eq!(read, Some(value));
    }
}
