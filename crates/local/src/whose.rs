//! Whose files on disk become those of a sandbox. Pure.

use cofferdam_wire::plan::{Overlay, Owner, Plan};

/// Whose files on disk become those of the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Whose {
    /// Nobody's: they stay as they are.
    Nobody,
    /// One user's and group's, who become the sandbox's user.
    One((u32, u32)),
    /// Everybody's that there is inside, under the same numbers on disk.
    All,
}

impl Whose {
    pub(crate) fn of(owner: Owner) -> Self {
        match owner {
            Owner::Same => Self::Nobody,
            Owner::Mapped { uid, gid } => Self::One((uid, gid)),
        }
    }

    /// In a root file system root inside gives files to the users that packages bring. They are on disk
    /// under their own numbers, in a directory that the host's root alone can enter.
    pub(crate) fn of_layer(plan: &Plan, overlay: &Overlay, owner: Owner) -> Self {
        let has_others = plan.uid_map.len() > 1 && plan.gid_map.len() > 1;
        let whose = Self::of(owner);
        let is_all = whose == Self::One((0, 0)) && overlay.path == "/" && has_others;
        if is_all { Self::All } else { whose }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_wire::plan::{IdRange, Upper};

    #[test]
    fn everybody_has_files_in_a_root_file_system_of_the_hosts_root_where_there_is_more_than_one() {
        let ids = |count: u32| {
            let range = |inside, count| IdRange { inside, outside: 5000 + inside, count };
            [range(0, 1), range(1, count)][..if count > 0 { 2 } else { 1 }].to_vec()
        };
        let plan = |count| Plan { uid_map: ids(count), gid_map: ids(count), ..Plan::default() };
        let at = |path: &str| Overlay {
            lower: Vec::new(),
            upper: Upper::Private { mode: 0o755 },
            path: path.to_owned(),
            without: Vec::new(),
        };
        let root = Owner::Mapped { uid: 0, gid: 0 };
        let other = Owner::Mapped { uid: 1000, gid: 0 };
        assert_eq!(Whose::of_layer(&plan(9), &at("/"), root), Whose::All);
        assert_eq!(Whose::of_layer(&plan(0), &at("/"), root), Whose::One((0, 0)));
        assert_eq!(Whose::of_layer(&plan(9), &at("/w"), root), Whose::One((0, 0)));
        assert_eq!(Whose::of_layer(&plan(9), &at("/"), other), Whose::One((1000, 0)));
        assert_eq!(Whose::of_layer(&plan(9), &at("/"), Owner::Same), Whose::Nobody);
        assert_eq!(Whose::of(root), Whose::One((0, 0)));
    }
}
