//! Characters by which a text looks like another one, or like nothing.

use std::borrow::Cow;

/// Whether a character steers a terminal, changes the order in which others are shown, or is not seen.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// The text with such characters made visible, so that words from inside a sandbox can neither fake a line
/// nor read otherwise than they are.
pub fn made_visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let visible = |c: char| match is_hidden(c) {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    Cow::Owned(text.chars().map(visible).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_turns_or_hides_text_is_shown_and_letters_of_every_script_stay() {
        let check = |text: &str, shown: &str| assert_eq!(made_visible(text), shown, "{text:?}");
        check("a\u{202e}b\u{2066}c\u{2069}", "a\\u{202e}b\\u{2066}c\\u{2069}");
        check("pay\u{200b}pal \u{feff}\u{ad}", "pay\\u{200b}pal \\u{feff}\\u{ad}");
        check("tag\u{e0041}\u{2028}line", "tag\\u{e0041}\\u{2028}line");
        check("a\u{1b}[2J\nb\u{9b}", "a\\u{1b}[2J\\nb\\u{9b}");
        for plain in ["über", "שלום", "مرحبا", "日本語", "e\u{301}", "🦀", ""] {
            check(plain, plain);
        }
    }
}
