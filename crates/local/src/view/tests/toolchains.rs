//! Caches that are added to, and what stands beside programs.

use super::*;
use crate::host::{HostFacts, Obstacle, UserNamespaces};

fn layered<'a>(view: &'a View, path: &str) -> Option<&'a Shown> {
    view.places.iter().find_map(|place| match place {
        Place::Layered { shown, owner: _ } if shown.path == path => Some(shown),
        Place::Layered { .. } | Place::Shown(_) | Place::Private { .. } => None,
    })
}

#[test]
fn a_cache_has_a_layer_where_something_can_be_fetched_and_the_kernel_makes_one() {
    let ground = Ground::new("caches");
    let caches = ["home/.cargo/registry/index", "home/.cargo/git/db", "home/go/pkg/mod"];
    caches.iter().chain(&["home/.cargo/bin"]).for_each(|name| drop(ground.directory(name)));
    let caches = caches.map(|name| ground.path(name));
    let mut spec = ground.spec();
    set(&mut spec, "PATH", &ground.path("home/.cargo/bin"));
    spec.profile = Profile::RepoWrite;
    let closed = user(&spec).unwrap();
    spec.egress = vec!["a.test:443".parse().unwrap()];
    let open = user(&spec).unwrap();
    let user_namespaces = UserNamespaces::Forbidden(Obstacle::AppArmor);
    let weaker = look(&spec, &HostFacts { user_namespaces, ..fake::host(1000) }).unwrap();
    for cache in &caches {
        let shown = layered(&open, cache).unwrap_or_else(|| panic!("{cache}"));
        assert_eq!(shown.access, Access::ReadOnly, "{cache}: what lies below its layer");
        for without in [&closed, &weaker] {
            assert!(layered(without, cache).is_none(), "{cache}");
            assert!(without.shows(cache), "{cache}: to be read all the same");
        }
        let said = |note: &String| note.starts_with(cache) && note.contains("without a layer");
        assert!(weaker.notes.iter().any(said), "{:?}", weaker.notes);
    }
    assert!(layered(&open, &ground.path("home/.cargo/bin")).is_none(), "programs are no cache");
    assert!(!closed.notes.iter().any(|note| note.contains("layer")), "{:?}", closed.notes);
}

#[test]
fn what_programs_of_a_toolchain_need_is_shown_beside_them_and_nothing_else() {
    let ground = Ground::new("beside");
    for name in [
        "home/tc/rust/bin",
        "home/tc/rust/lib/rustlib",
        "home/tc/rust/share/keyrings",
        "home/tc/go/bin",
        "home/tc/go/src/runtime",
        "home/tc/go/pkg/tool",
        "home/.local/bin",
        "home/.local/lib/rustlib",
        "home/.local/share/keyrings",
        // A home that looks like a toolchain is a home.
        "home/bin",
        "home/lib/rustlib",
        "home/.ssh",
        "home/plain/bin",
        "home/plain/lib/x",
        "home/half/bin",
        "home/half/src/runtime",
        "home/linked/bin",
        "home/linked/elsewhere/rustlib",
    ] {
        ground.directory(name);
    }
    ground.file("home/tc/go/VERSION", "go1");
    let link = ground.0.join("home/linked/lib");
    std::os::unix::fs::symlink(ground.path("home/linked/elsewhere"), link).unwrap();
    let mut spec = ground.spec();
    let entries = ["tc/rust", "tc/go", ".local", "plain", "half", "linked"];
    let mut path: Vec<String> =
        entries.iter().map(|root| ground.path(&format!("home/{root}/bin"))).collect();
    path.push(ground.path("home/bin"));
    set(&mut spec, "PATH", &path.join(":"));
    let view = user(&spec).unwrap();
    for needed in
        ["tc/rust/lib", "tc/go/src", "tc/go/pkg", "tc/go/VERSION", ".local/lib", "tc/rust/bin"]
    {
        let place = shown(&view, &ground.path(&format!("home/{needed}")));
        assert_eq!(place.unwrap_or_else(|| panic!("{needed}")).access, Access::ReadOnly);
    }
    for hidden in [
        "tc/rust/share",
        "tc",
        ".local/share",
        "lib",
        ".ssh",
        "plain/lib",
        "half/src",
        "linked/lib",
        "linked/elsewhere",
    ] {
        assert!(!view.shows(&ground.path(&format!("home/{hidden}"))), "{hidden}");
    }
    assert!(path.iter().all(|entry| view.path.contains(entry)), "{:?}", view.path);
}

/// Puts a link there, with the directories above it.
fn link(ground: &Ground, name: &str, target: &str) {
    let link = ground.0.join(name);
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(target, link).unwrap();
}

#[test]
fn a_link_that_an_earlier_run_of_another_workspace_may_have_planted_shows_nothing() {
    let ground = Ground::new("planted-elsewhere");
    ground.directory("home/private/bin");
    ground.directory("home/other/real/bin");
    ground.directory("home/n/bin");
    let private = ground.path("home/private");
    link(&ground, "home/other/venv/bin", "../../private");
    link(&ground, "home/other/whole", "../private");
    link(&ground, "home/other/absolute", &private);
    link(&ground, "home/other/first", "second");
    link(&ground, "home/other/second", &private);
    link(&ground, "home/other/n", &ground.path("home/n"));
    link(&ground, "home/other/mod", &private);
    let entries = ["venv/bin", "whole/bin", "absolute/bin", "first/bin", "n/bin", "real/bin"];
    let path = entries.map(|name| ground.path(&format!("home/other/{name}"))).join(":");
    let mut spec = ground.spec();
    set(&mut spec, "PATH", &path);
    set(&mut spec, "VIRTUAL_ENV", &ground.path("home/other/whole"));
    set(&mut spec, "GOMODCACHE", &ground.path("home/other/mod"));
    for view in [user(&spec).unwrap(), look(&spec, &fake::host(0)).unwrap()] {
        for hidden in ["home/private", "home/private/bin", "home/n", "home/n/bin"] {
            assert!(!view.shows(&ground.path(hidden)), "{hidden}: {:?}", view.places);
        }
        for link in ["venv/bin", "whole", "absolute", "second", "mod"] {
            let link = ground.path(&format!("home/other/{link}"));
            let said = |note: &String| note.contains(&link) && note.contains("--read");
            assert!(view.notes.iter().any(said), "{link}: {:?}", view.notes);
        }
        // The control: what is no link is shown.
        assert!(view.shows(&ground.path("home/other/real/bin")));
    }
    // What the caller lists is followed to.
    spec.read = vec![private.clone().into()];
    let view = user(&spec).unwrap();
    assert!(view.path.contains(&private) && view.shows(&private), "{:?}", view.path);
}

#[test]
fn links_of_usual_set_ups_are_followed() {
    let ground = Ground::new("usual-links");
    for name in [
        "home/.nvm/versions/node/v20/bin",
        "home/.local/share/fnm/node-versions/v20/installation/bin",
        "home/.sdkman/candidates/java/21/bin",
        "home/dotfiles/bin",
        "home/tools/v3/bin",
    ] {
        ground.directory(name);
    }
    link(&ground, "home/.nvm/current", "versions/node/v20");
    let fnm = ground.path("home/.local/share/fnm/node-versions/v20/installation");
    link(&ground, "run/fnm_multishells/1", &fnm);
    link(&ground, "home/.sdkman/candidates/java/current", "21");
    // Managers of dotfiles, in the home directory itself.
    link(&ground, "home/bin", "dotfiles/bin");
    link(&ground, "home/tools/current", &ground.path("home/tools/v3"));
    // Profiles of Nix: a link in the home directory, further ones, and the store.
    link(&ground, "home/.nix-profile", &ground.path("home/.state/nix/profile"));
    link(&ground, "home/.state/nix/profile", "profile-1-link");
    link(&ground, "home/.state/nix/profile-1-link", "/usr");
    // A project's own, into the store.
    link(&ground, "home/other/.devbox", "/usr");
    let entries = [
        ("home/.nvm/current/bin", "home/.nvm/versions/node/v20/bin"),
        ("run/fnm_multishells/1/bin", "home/.local/share/fnm/node-versions/v20/installation/bin"),
        ("home/.sdkman/candidates/java/current/bin", "home/.sdkman/candidates/java/21/bin"),
        ("home/bin", "home/dotfiles/bin"),
        ("home/tools/current/bin", "home/tools/v3/bin"),
        ("home/.nix-profile/bin", ""),
        ("home/other/.devbox/bin", ""),
    ];
    let mut spec = ground.spec();
    set(&mut spec, "PATH", &entries.map(|(entry, _)| ground.path(entry)).join(":"));
    for view in [user(&spec).unwrap(), look(&spec, &fake::host(0)).unwrap()] {
        for (entry, leads) in entries {
            let leads = if leads.is_empty() { "/usr/bin".to_owned() } else { ground.path(leads) };
            assert!(view.path.contains(&leads), "{entry}: {:?} {:?}", view.path, view.notes);
            assert!(view.shows(&leads), "{entry}");
        }
        assert!(!view.notes.iter().any(|note| note.contains("the link")), "{:?}", view.notes);
    }
}
