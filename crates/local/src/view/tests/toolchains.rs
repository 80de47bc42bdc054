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
