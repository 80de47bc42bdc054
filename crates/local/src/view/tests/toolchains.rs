//! Caches that are added to.

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
