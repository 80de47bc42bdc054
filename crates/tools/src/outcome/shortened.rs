//! A result in JSON with less in it: long texts with their ends alone, long lists with their beginning.
//! Pure.

use crate::plain::middle_cut;
use serde_json::{Value, json};

/// The shortest part that a text is cut to: a hint is no longer.
const MIN_PART_BYTES: usize = 256;

/// The result in at most so many bytes of JSON, or near to that: no text and no list in it has more than
/// there is room for. What is still longer is cut as a text.
pub(super) fn json(whole: &Value, most: usize) -> String {
    let mut part = most;
    loop {
        let text = serde_json::to_string(&less(whole, part)).unwrap_or_default();
        if text.len() <= most {
            return text;
        }
        if part <= MIN_PART_BYTES {
            return middle_cut(&text, most);
        }
        part = (part * 3 / 4).max(MIN_PART_BYTES);
    }
}

/// The same with no text of more bytes than this, and no list of more.
fn less(whole: &Value, part: usize) -> Value {
    match whole {
        Value::String(text) if text.len() > part => json!(middle_cut(text, part)),
        Value::Array(all) => first(all, part),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), less(value, part))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => whole.clone(),
    }
}

fn first(all: &[Value], part: usize) -> Value {
    let mut shown = Vec::new();
    let mut room = part;
    for item in all {
        let item = less(item, part);
        let bytes = serde_json::to_string(&item).map_or(usize::MAX, |text| text.len() + 1);
        let Some(left) = room.checked_sub(bytes) else {
            shown.push(json!(format!("[... {} more ...]", all.len() - shown.len())));
            break;
        };
        room = left;
        shown.push(item);
    }
    shown.into()
}
