//! Which package may depend on which.

use super::Finding;
use super::tree::{File, Tree};
use toml::Table;

/// A package of the workspace, and which others it may use. Tests may use the conformance suite too.
struct Room {
    name: &'static str,
    may_use: &'static [&'static str],
}

/// The only arrows there are. A new room is a new row here, and a decision note.
const ROOMS: [Room; 20] = [
    Room { name: "cofferdam-wire", may_use: &[] },
    Room { name: "cofferdam-guestd", may_use: &["cofferdam-wire"] },
    Room { name: "cofferdam-core", may_use: &["cofferdam-wire"] },
    Room {
        name: "cofferdam-local",
        may_use: &["cofferdam-core", "cofferdam-guestd", "cofferdam-wire"],
    },
    Room { name: "cofferdam-image", may_use: &["cofferdam-archive", "cofferdam-core"] },
    Room { name: "cofferdam-registry", may_use: &["cofferdam-core", "cofferdam-image"] },
    Room {
        name: "cofferdam-session",
        may_use: &["cofferdam-archive", "cofferdam-core", "cofferdam-search", "cofferdam-secrets"],
    },
    Room {
        name: "cofferdam-server",
        may_use: &[
            "cofferdam-archive",
            "cofferdam-core",
            "cofferdam-mcp",
            "cofferdam-search",
            "cofferdam-secrets",
            "cofferdam-session",
            "cofferdam-tools",
        ],
    },
    Room { name: "cofferdam-client", may_use: &["cofferdam-core", "cofferdam-session"] },
    Room { name: "cofferdam-search", may_use: &["cofferdam-core"] },
    Room { name: "cofferdam-secrets", may_use: &["cofferdam-core"] },
    Room { name: "cofferdam-terminate", may_use: &["cofferdam-core"] },
    Room {
        name: "cofferdam-mcp",
        may_use: &["cofferdam-core", "cofferdam-session", "cofferdam-tools"],
    },
    Room {
        name: "cofferdam-tools",
        may_use: &["cofferdam-core", "cofferdam-search", "cofferdam-session"],
    },
    Room { name: "cofferdam-archive", may_use: &["cofferdam-core"] },
    Room { name: "cofferdam-gate", may_use: &["cofferdam-core", "cofferdam-terminate"] },
    Room {
        name: "cofferdam",
        may_use: &[
            "cofferdam-archive",
            "cofferdam-core",
            "cofferdam-image",
            "cofferdam-local",
            "cofferdam-search",
        ],
    },
    Room {
        name: "cofferdam-cli",
        may_use: &[
            "cofferdam",
            "cofferdam-archive",
            "cofferdam-client",
            "cofferdam-core",
            "cofferdam-gate",
            "cofferdam-guestd",
            "cofferdam-image",
            "cofferdam-local",
            "cofferdam-mcp",
            "cofferdam-registry",
            "cofferdam-search",
            "cofferdam-secrets",
            "cofferdam-server",
            "cofferdam-session",
            "cofferdam-terminate",
            "cofferdam-tools",
            "cofferdam-wire",
        ],
    },
    Room {
        name: "cofferdam-conformance",
        may_use: &["cofferdam-archive", "cofferdam-core", "cofferdam-search", "cofferdam-session"],
    },
    Room { name: "cofferdam-xtask", may_use: &["cofferdam", "cofferdam-session"] },
];

/// The suite that tests of any room may use.
const SUITE: &str = "cofferdam-conformance";

/// What tests of one room may use beside that: tools are tried on real sandboxes, whose backend their
/// library does not know.
const IN_TESTS: [(&str, &str); 1] = [("cofferdam-tools", "cofferdam")];

/// What the wire may use from outside: it is compiled into the guest.
const WIRE_MAY_USE: [&str; 2] = ["serde", "serde_json"];

/// The most direct dependencies of the guest, the wire among them.
const GUEST_DEPENDENCIES: usize = 6;

/// A dependency points the way that the map allows.
pub(super) fn directions(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (file, manifest) in manifests(tree, &mut found) {
        let name = package_name(&manifest);
        let Some(room) = ROOMS.iter().find(|room| room.name == name) else {
            found.push(Finding::new(&file.path, 0, format!("{name} is not on the map")));
            continue;
        };
        for (kind, dependency) in dependencies(&manifest) {
            let ours = dependency == "cofferdam" || dependency.starts_with("cofferdam-");
            let pair = (name.as_str(), dependency.as_str());
            let in_tests =
                kind == "dev-dependencies" && (dependency == SUITE || IN_TESTS.contains(&pair));
            if ours && !in_tests && !room.may_use.contains(&dependency.as_str()) {
                let what = format!("{name} must not depend on {dependency}");
                found.push(Finding::new(&file.path, 0, what));
            }
        }
    }
    found
}

/// What is compiled into the guest program has few dependencies and no runtime.
pub(super) fn guest_stays_small(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (file, manifest) in manifests(tree, &mut Vec::new()) {
        let name = package_name(&manifest);
        let direct: Vec<String> = dependencies(&manifest)
            .into_iter()
            .filter(|(kind, _)| kind == "dependencies")
            .map(|(_, dependency)| dependency)
            .collect();
        if name == "cofferdam-wire" {
            for other in direct.iter().filter(|other| !WIRE_MAY_USE.contains(&other.as_str())) {
                let what = format!("the wire must not depend on {other}");
                found.push(Finding::new(&file.path, 0, what));
            }
        }
        if name == "cofferdam-guestd" && direct.len() > GUEST_DEPENDENCIES {
            let what = format!("{} dependencies are over {GUEST_DEPENDENCIES}", direct.len());
            found.push(Finding::new(&file.path, 0, what));
        }
        if name == "cofferdam-guestd" && direct.iter().any(|other| other.starts_with("tokio")) {
            found.push(Finding::new(&file.path, 0, "the guest has no runtime"));
        }
    }
    found
}

fn manifests<'a>(tree: &'a Tree, found: &mut Vec<Finding>) -> Vec<(&'a File, Table)> {
    let mut manifests = Vec::new();
    for file in &tree.files {
        let ours = file.path.starts_with("crates/") || file.path.starts_with("xtask/");
        if !ours || !file.path.ends_with("/Cargo.toml") {
            continue;
        }
        match file.text.parse::<Table>() {
            Ok(manifest) => manifests.push((file, manifest)),
            Err(error) => found.push(Finding::new(&file.path, 0, error.to_string())),
        }
    }
    manifests
}

fn package_name(manifest: &Table) -> String {
    let name = manifest.get("package").and_then(|package| package.get("name"));
    name.and_then(|name| name.as_str()).unwrap_or("a package without a name").to_owned()
}

/// The kind and the package name of each dependency, those of single targets included.
fn dependencies(manifest: &Table) -> Vec<(String, String)> {
    let mut list = Vec::new();
    let targets = manifest.get("target").and_then(|targets| targets.as_table());
    let tables = targets.into_iter().flat_map(|targets| targets.values());
    for table in tables.filter_map(|target| target.as_table()).chain([manifest]) {
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(entries) = table.get(kind).and_then(|entries| entries.as_table()) else {
                continue;
            };
            for (key, value) in entries {
                let renamed = value.get("package").and_then(|name| name.as_str());
                list.push((kind.to_owned(), renamed.unwrap_or(key).to_owned()));
            }
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, broken: &[&str]) {
        let tree = Tree::of(&[("crates/x/Cargo.toml", text)]);
        let mut found = directions(&tree);
        found.extend(guest_stays_small(&tree));
        let what: Vec<&str> = found.iter().map(|finding| finding.what.as_str()).collect();
        assert_eq!(what, broken);
    }

    #[test]
    fn an_arrow_against_the_map_is_found() {
        check(
            "[package]\nname = 'cofferdam-core'\n[dependencies]\ncofferdam-wire.workspace = true",
            &[],
        );
        check(
            "[package]\nname = 'cofferdam-core'\n[dependencies]\ncofferdam-local.workspace = true",
            &["cofferdam-core must not depend on cofferdam-local"],
        );
        check(
            "[package]\nname = 'cofferdam-core'\n[target.x.dependencies]\na = { package = 'cofferdam' }",
            &["cofferdam-core must not depend on cofferdam"],
        );
        check("[package]\nname = 'cofferdam-new'", &["cofferdam-new is not on the map"]);
    }

    #[test]
    fn only_tests_may_use_the_suite() {
        let manifest = |kind: &str| {
            format!("[package]\nname = 'cofferdam-local'\n[{kind}]\ncofferdam-conformance = '1'")
        };
        check(&manifest("dev-dependencies"), &[]);
        check(
            &manifest("dependencies"),
            &["cofferdam-local must not depend on cofferdam-conformance"],
        );
    }

    #[test]
    fn a_heavy_guest_is_found() {
        check(
            "[package]\nname = 'cofferdam-wire'\n[dependencies]\ntokio = '1'",
            &["the wire must not depend on tokio"],
        );
        check(
            "[package]\nname = 'cofferdam-guestd'\n[dependencies]\ntokio = '1'",
            &["the guest has no runtime"],
        );
        check(
            "[package]\nname = 'cofferdam-guestd'\n[dependencies]\na='1'\nb='1'\nc='1'\nd='1'\ne='1'\nf='1'\ng='1'",
            &["7 dependencies are over 6"],
        );
    }
}
