use super::*;

fn entry() -> Entry {
    let args = ["mcp", "--profile", "read-only"].map(str::to_owned).to_vec();
    Entry { name: "cofferdam".to_owned(), command: "/usr/bin/cofferdam".to_owned(), args }
}

fn edited(client: Client, text: &str) -> Result<String> {
    client.edited(Path::new("/c/file"), Some(text), &entry())
}

/// What the client reads there, and that doing it again changes nothing.
fn check(client: Client, before: &str, after: &str) {
    let text = edited(client, before).unwrap();
    assert_eq!(text, after, "{before}");
    assert_eq!(edited(client, &text).unwrap(), text, "again");
}

#[test]
fn a_file_that_is_not_there_is_made_whole() {
    let made = |client: Client| client.edited(Path::new("f"), None, &entry()).unwrap();
    assert_eq!(
        made(Client::Claude),
        r#"{
  "mcpServers": {
    "cofferdam": {
      "type": "stdio",
      "command": "/usr/bin/cofferdam",
      "args": ["mcp","--profile","read-only"]
    }
  }
}
"#
    );
    assert!(made(Client::Vscode).contains("\"servers\""));
    assert!(!made(Client::Cursor).contains("type"));
    assert_eq!(
        made(Client::Codex),
        "[mcp_servers.cofferdam]\ncommand = \"/usr/bin/cofferdam\"\n\
         args = [\"mcp\", \"--profile\", \"read-only\"]\n"
    );
    for client in Client::ALL {
        let text = made(client);
        assert_eq!(client.edited(Path::new("f"), Some(&text), &entry()).unwrap(), text);
    }
}

#[test]
fn everything_else_of_a_json_file_stays_as_it_is_written() {
    let before = "\u{feff}// mine\n{\n\t\"b\": 1.50e3, /* odd */\n\t\"a\": [1,\n 2],\n\t\"mcpServers\": {\n\
                  \t\t\"x\": {\"command\": \"y\"} // last\n\t}\n}";
    let after = "\u{feff}// mine\n{\n\t\"b\": 1.50e3, /* odd */\n\t\"a\": [1,\n 2],\n\t\"mcpServers\": {\n\
                 \t\t\"x\": {\"command\": \"y\"}, // last\n\
                 \t\t\"cofferdam\": {\n\
                 \t\t\t\"command\": \"/usr/bin/cofferdam\",\n\
                 \t\t\t\"args\": [\"mcp\",\"--profile\",\"read-only\"]\n\
                 \t\t}\n\t}\n}";
    // Members are set one by one; what is made at once has them in the same order.
    let text = edited(Client::Cursor, before).unwrap();
    assert_eq!(text, after);
    assert_eq!(edited(Client::Cursor, &text).unwrap(), text);
}

#[test]
fn an_entry_that_is_there_keeps_what_is_not_ours() {
    let before = r#"{"mcpServers": {"cofferdam": {"command": "old", "env": {"A": "1"}}, "z": {}}}"#;
    let text = edited(Client::Cursor, before).unwrap();
    let read: Value = serde_json::from_str(&text).unwrap();
    let server = &read["mcpServers"]["cofferdam"];
    assert_eq!(server["command"], "/usr/bin/cofferdam");
    assert_eq!(server["args"][1], "--profile");
    assert_eq!(server["env"]["A"], "1");
    assert!(read["mcpServers"]["z"].is_object());
    assert_eq!(edited(Client::Cursor, &text).unwrap(), text);
}

#[test]
fn objects_of_every_shape_take_one_more_member() {
    for before in [
        "{}",
        "{ }",
        "{\n}",
        "{\n  // none yet\n}\n",
        "{\"mcpServers\":{}}",
        "{\"mcpServers\":{\"a\":{}}}",
        "{\n  \"mcpServers\": {\n    \"a\": {},\n  },\n}\n",
        "{\"a\": \"}{][,:\\\"\", \"mcpServers\": {\n}}",
        "{\r\n  \"mcpServers\": {\r\n    \"a\": 1 // x\r\n  }\r\n}\r\n",
    ] {
        let text = edited(Client::Cursor, before).unwrap();
        assert_eq!(edited(Client::Cursor, &text).unwrap(), text, "{before:?}");
        assert!(text.contains("\"/usr/bin/cofferdam\""), "{before:?}");
        if !before.contains("//") && !before.contains(",\n}") {
            let read: Value =
                serde_json::from_str(&edited(Client::Claude, before).unwrap()).unwrap();
            assert_eq!(read["mcpServers"]["cofferdam"]["type"], "stdio", "{before:?}");
        }
    }
}

#[test]
fn what_is_no_plain_json_is_refused_for_a_client_that_reads_nothing_else() {
    for (text, line) in [
        ("// mine\n", 1),
        ("{\n  // mine\n  \"a\": 1\n}\n", 2),
        ("{\n  \"a\": 1 /* odd */\n}\n", 2),
        ("{\n  \"a\": [1, 2],\n}\n", 3),
        ("{}\n// last\n", 2),
    ] {
        let error = edited(Client::Claude, text).unwrap_err();
        let said = format!("/c/file, line {line}: a comment, or a comma");
        assert_eq!(error.kind, ErrorKind::Config, "{text}");
        assert!(error.message.starts_with(&said), "{text}: {}", error.message);
        assert!(error.hint.unwrap().contains("nothing was changed"), "{text}");
        // The control: others read comments, and keep them.
        let kept = edited(Client::Vscode, text).unwrap();
        assert_eq!(kept.contains("mine"), text.contains("mine"), "{kept}");
    }
    let plain = "\u{feff}{\n  \"a\": \"// no comment, [1,]\"\n}\n";
    assert!(edited(Client::Claude, plain).unwrap().contains("// no comment, [1,]"));
    assert!(edited(Client::Claude, " \n").unwrap().contains("cofferdam"));
}

#[test]
fn everything_else_of_a_toml_file_stays_as_it_is_written() {
    check(
        Client::Codex,
        "# mine\nmodel = 'o' # best\n\n[mcp_servers.x]\ncommand = \"y\"\n\n[tui]\na = 1\n",
        "# mine\nmodel = 'o' # best\n\n[mcp_servers.x]\ncommand = \"y\"\n\n\
         [mcp_servers.cofferdam]\ncommand = \"/usr/bin/cofferdam\"\n\
         args = [\"mcp\", \"--profile\", \"read-only\"]\n\n[tui]\na = 1\n",
    );
    let text = edited(
        Client::Codex,
        "[mcp_servers.cofferdam]\ncommand = \"old\" # where\nenv = { A = \"1\" } # kept\n",
    );
    let text = text.unwrap();
    assert!(text.contains("env = { A = \"1\" } # kept"), "{text}");
    assert!(text.contains("command = \"/usr/bin/cofferdam\""), "{text}");
}

#[test]
fn a_malformed_file_is_refused_with_its_name_and_line() {
    let refused = |client, text: &str, line: usize| {
        let error = edited(client, text).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Config, "{text}: {error:?}");
        let place = format!("/c/file, line {line}");
        assert!(error.message.starts_with(&place), "{text}: {}", error.message);
    };
    for (text, line) in [
        ("{", 1),
        ("{\n\"a\" 1}", 2),
        ("{\"a\": 1\n\"b\": 2}", 2),
        ("{\"a\": tru}", 1),
        ("{\"a\": \"b}", 1),
        ("{\"a\": \"\\x\"}", 1),
        ("{\"a\": [1 2]}", 1),
        ("{\"a\": 1} x", 1),
        ("{\"a\": 1, \"a\": 2}", 1),
        ("{\"a\": 1} /* x", 1),
        ("{,}", 1),
        ("{'a': 1}", 1),
    ] {
        refused(Client::Claude, text, line);
    }
    let deep = format!("{{\"a\": {}", "[".repeat(200));
    refused(Client::Claude, &deep, 1);
    let deep = "{\"a\":".repeat(200);
    refused(Client::Claude, &deep, 1);
    refused(Client::Codex, "a = 1\nb = \n", 2);
    refused(Client::Codex, "[mcp_servers.x]\n[mcp_servers.x]\n", 2);
}

#[test]
fn what_means_something_else_is_left_alone() {
    for (client, text, what) in [
        (Client::Claude, "[]", "is no object"),
        (Client::Claude, r#"{"mcpServers": []}"#, "mcpServers is no object"),
        (Client::Claude, r#"{"mcpServers": {"cofferdam": 1}}"#, "cofferdam is no object"),
        (Client::Vscode, r#"{"servers": {"cofferdam": {"url": "u"}}}"#, "by its address"),
        (Client::Codex, "mcp_servers = 1\n", "mcp_servers is no table"),
        (Client::Codex, "[mcp_servers]\ncofferdam = 1\n", "mcp_servers.cofferdam is no table"),
        (Client::Codex, "[mcp_servers.cofferdam]\nurl = \"u\"\n", "by its address"),
    ] {
        let error = edited(client, text).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Conflict, "{text}");
        assert!(error.message.contains(what), "{text}: {}", error.message);
    }
    let bad = Entry { name: "a b".to_owned(), ..entry() };
    let error = Client::Claude.edited(Path::new("f"), None, &bad).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Usage);
}

#[test]
fn each_client_has_a_file_for_the_user_and_one_for_a_project() {
    let places = Places {
        home: "/home/u".into(),
        config: "/home/u/.config".into(),
        codex: None,
        claude: None,
        project: "/p".into(),
    };
    let file = |client: Client, audience| client.file(audience, &places).display().to_string();
    let all =
        Client::ALL.map(|client| (file(client, Audience::User), file(client, Audience::Project)));
    let expected = [
        ("/home/u/.claude.json", "/p/.mcp.json"),
        ("/home/u/.cursor/mcp.json", "/p/.cursor/mcp.json"),
        ("/home/u/.codex/config.toml", "/p/.codex/config.toml"),
        ("/home/u/.config/Code/User/mcp.json", "/p/.vscode/mcp.json"),
    ];
    assert_eq!(all, expected.map(|(user, project)| (user.to_owned(), project.to_owned())));
    let moved = Places { codex: Some("/x".into()), claude: Some("/y".into()), ..places.clone() };
    assert_eq!(Client::Codex.file(Audience::User, &moved), Path::new("/x/config.toml"));
    assert_eq!(Client::Claude.file(Audience::User, &moved), Path::new("/y/.claude.json"));
}
