use super::*;

fn password(name: &str, password: &str) -> Option<Credentials> {
    Some(Credentials::Password(name.to_owned(), Secret::new(password)))
}

fn found(text: &str, image: &str) -> Option<Credentials> {
    let kept: Kept = serde_json::from_str(text).unwrap();
    match of_file(&kept, &Remote::parse(image).unwrap()).0 {
        Wanted::Known(credentials) => Some(credentials),
        Wanted::Helper(name, server) => password(name, server),
        Wanted::Nothing => None,
    }
}

#[test]
fn a_registry_is_known_by_each_of_its_names() {
    // "u:p:q"
    for key in
        ["localhost:5000", "http://localhost:5000", "https://localhost:5000/v2/", "localhost:5000/"]
    {
        let text = format!(r#"{{"auths":{{"{key}":{{"auth":"dTpwOnE="}}}}}}"#);
        assert_eq!(found(&text, "localhost:5000/x:1"), password("u", "p:q"), "{key}");
        assert_eq!(found(&text, "localhost:5001/x:1"), None, "{key}");
        assert_eq!(found(&text, "localhost/x:1"), None, "{key}");
    }
    for key in ["docker.io", "index.docker.io", OLD_NAME] {
        let text = format!(r#"{{"auths":{{"{key}":{{"auth":"dTpwOnE="}}}}}}"#);
        assert_eq!(found(&text, "debian:12"), password("u", "p:q"), "{key}");
    }
}

#[test]
fn the_most_exact_name_counts_and_all_forms_are_read() {
    let text = r#"{"auths":{
        "a.example":{"username":"all","password":"1"},
        "a.example/team":{"username":"team","password":"2"},
        "a.example/team/secret":{"identitytoken":"i"},
        "a.example/raw":{"registrytoken":"t"},
        "a.example/odd":{"auth":"!"}}}"#;
    assert_eq!(found(text, "a.example/x:1"), password("all", "1"));
    assert_eq!(found(text, "a.example/team/x:1"), password("team", "2"));
    assert_eq!(found(text, "a.example/team2/x:1"), password("all", "1"));
    let identity = Some(Credentials::Identity(Secret::new("i")));
    assert_eq!(found(text, "a.example/team/secret:1"), identity);
    assert_eq!(found(text, "a.example/raw:1"), Some(Credentials::Token(Secret::new("t"))));
    assert_eq!(found(text, "a.example/odd:1"), password("all", "1"));
}

#[test]
fn an_entry_that_cannot_be_read_is_told_with_its_file_and_what_to_do() {
    let directory = std::env::temp_dir().join(format!("cofferdam-entry-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("auth.json");
    let places = Places { named: Some(path.clone()), ..Places::default() };
    let remote = Remote::parse("a.example/x:1").unwrap();
    let told = |auth: &str| {
        std::fs::write(&path, format!(r#"{{"auths":{{"a.example":{{"auth":"{auth}"}}}}}}"#))
            .unwrap();
        let found = look(&places, &remote, Duration::from_secs(1)).unwrap();
        (found.credentials, found.looked.join("\n"))
    };
    // Of another alphabet, cut short, no text, and without a colon.
    for auth in ["canary-_", "dTpwOnE", "/////w==", "Y2FuYXJ5"] {
        let (credentials, told) = told(auth);
        assert!(credentials.is_none() && told.contains(path.to_str().unwrap()), "{told}");
        assert!(told.contains("entry for a.example cannot be read, so log in anew"), "{told}");
        assert!(!told.contains(auth) && !told.contains("canary"), "{told}");
    }
    // Controls: what other tools read too, and where nothing is said.
    assert_eq!(told("dTpwOnF=").0, password("u", "p:q"), "bits behind the end");
    assert!(told("").1.ends_with("does not know a.example"));
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_helper_of_a_registry_stands_above_what_is_written_and_the_store_below() {
    let text = r#"{"auths":{"a.example":{"auth":"dTpwOnE="},"b.example":{}},
        "credHelpers":{"a.example":"one","docker.io":"two"},"credsStore":"all"}"#;
    assert_eq!(found(text, "a.example/x:1"), password("one", "a.example"));
    assert_eq!(found(text, "b.example/x:1"), password("all", "b.example"));
    assert_eq!(found(text, "debian"), password("two", OLD_NAME));
}

#[test]
fn places_are_looked_at_in_order_and_told() {
    let directory = std::env::temp_dir().join(format!("cofferdam-places-{}", std::process::id()));
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("docker/config.json", r#"{"auths":{"b.example":{"username":"b","password":"1"}}}"#);
    write("run/containers/auth.json", r#"{"auths":{"a.example":{"username":"a","password":"2"}}}"#);
    let variables = [("DOCKER_CONFIG", "docker"), ("XDG_RUNTIME_DIR", "run")];
    let variables: BTreeMap<OsString, OsString> = variables
        .into_iter()
        .map(|(name, end)| (name.into(), directory.join(end).into()))
        .collect();
    let mut places = Places::of(&variables, Some(&directory.join("home")));
    let remote = Remote::parse("a.example/x:1").unwrap();
    let all = look(&places, &remote, Duration::from_secs(1)).unwrap();
    assert_eq!(all.credentials, password("a", "2"));
    let told = all.looked.join("\n");
    for part in ["does not know a.example", ".docker/config.json is not there", "auth.json: knows"]
    {
        assert!(told.contains(part), "{told}");
    }
    // One that is named must be there, and readable, and nothing of it is shown.
    places.named = Some(directory.join("none"));
    let error = look(&places, &remote, Duration::from_secs(1)).unwrap_err();
    assert!(error.hint.unwrap().contains("REGISTRY_AUTH_FILE"));
    write("broken", "{\n\"auths\":canary}");
    places.named = Some(directory.join("broken"));
    let error = look(&places, &remote, Duration::from_secs(1)).unwrap_err();
    assert!(error.message.contains("line 2") && !error.chain().contains("canary"));
    std::fs::File::create(directory.join("long"))
        .unwrap()
        .set_len(MAX_CREDENTIALS_BYTES + 1)
        .unwrap();
    places.named = Some(directory.join("long"));
    let error = look(&places, &remote, Duration::from_secs(1)).unwrap_err();
    assert!(error.message.contains("too long"));
    std::fs::remove_dir_all(directory).unwrap();
}
