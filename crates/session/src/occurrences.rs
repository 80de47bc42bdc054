//! Where one sequence stands in another. Linear, however alike their parts are.

/// Every place where a sequence begins in another, those that overlap among them.
pub(crate) struct Occurrences<'s, T> {
    wanted: &'s [T],
    /// For each beginning of `wanted`, by its length, the longest shorter one that it ends with.
    borders: Vec<usize>,
    matched: usize,
    rest: std::iter::Enumerate<std::slice::Iter<'s, T>>,
    from: usize,
}

/// Where `wanted`, which is not empty, stands in `all` from `from` on.
pub(crate) fn occurrences<'s, T: Eq>(
    wanted: &'s [T],
    all: &'s [T],
    from: usize,
) -> Occurrences<'s, T> {
    let mut borders = vec![0, 0];
    let mut matched = 0;
    for part in wanted.iter().skip(1) {
        matched = grown(wanted, &borders, matched, part);
        borders.push(matched);
    }
    let rest = all.get(from..).unwrap_or_default().iter().enumerate();
    Occurrences { wanted, borders, matched: 0, rest, from }
}

/// How much of `wanted` is matched with one more part.
fn grown<T: Eq>(wanted: &[T], borders: &[usize], mut matched: usize, part: &T) -> usize {
    loop {
        if wanted.get(matched) == Some(part) {
            return matched + 1;
        }
        if matched == 0 {
            return 0;
        }
        matched = borders.get(matched).copied().unwrap_or(0);
    }
}

impl<T: Eq> Iterator for Occurrences<'_, T> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.wanted.is_empty() {
            return None;
        }
        for (at, part) in self.rest.by_ref() {
            self.matched = grown(self.wanted, &self.borders, self.matched, part);
            if self.matched == self.wanted.len() {
                return Some(self.from + at + 1 - self.wanted.len());
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn places_are_those_of_a_plain_search(
            wanted in proptest::collection::vec(1_u32..3, 1..6),
            all in proptest::collection::vec(0_u32..3, 0..40),
            from in 0_usize..50,
        ) {
            let plain = (from..all.len()).filter(|at| all[*at..].starts_with(&wanted));
            let found: Vec<usize> = occurrences(&wanted, &all, from).collect();
            prop_assert_eq!(found, plain.collect::<Vec<_>>());
        }
    }
}
