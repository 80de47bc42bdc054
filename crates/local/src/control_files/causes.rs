//! Why names are not protected, in words.

use super::Unprotected;

/// How many names are told of one cause.
const TOLD_NAMES: usize = 3;

/// One for each cause: in a closed directory every name has the same.
pub(super) fn sentences(names: &[Unprotected]) -> Vec<String> {
    let mut causes: Vec<(&str, Vec<&str>)> = Vec::new();
    for Unprotected { path, why } in names {
        match causes.iter_mut().find(|(known, _)| known == why) {
            Some((_, paths)) => paths.push(path),
            None => causes.push((why, vec![path])),
        }
    }
    let sentence = |(why, paths): (&str, Vec<&str>)| {
        let told: Vec<String> = paths.iter().take(TOLD_NAMES).map(|it| format!("{it:?}")).collect();
        let more = match paths.len().saturating_sub(TOLD_NAMES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let are = if paths.len() == 1 { "is" } else { "are" };
        format!("files: {}{more} {are} not protected: {why}", told.join(", "))
    };
    causes.into_iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_names_that_lack_the_same_are_one_reason() {
        let lacks = |path: &str, why: &str| Unprotected { path: path.into(), why: why.into() };
        let closed = ["a", "b", "c", "d", "e"].map(|path| lacks(path, "closed"));
        let all: Vec<Unprotected> = closed.into_iter().chain([lacks("f", "no room")]).collect();
        let many = "files: \"a\", \"b\", \"c\" and 2 more are not protected: closed";
        assert_eq!(sentences(&all), [many, "files: \"f\" is not protected: no room"]);
    }
}
