//! The clients in other languages, by their own tests and examples, and the inspector of the Model Context
//! Protocol. What they need is in the directory that `TEST_COFFERDAM_CLIENTS` names, see `clients/tools`.

use crate::http_client::Served;
use crate::place::{Person, Place, SOON, Said, everyone, outcome, skipped};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

const NODE: &str = "/usr/bin/node";

/// The directory of a part of `clients/tools`, where it is whole.
fn part(name: &str, feature: &str) -> Option<PathBuf> {
    let tools = std::env::var_os("TEST_COFFERDAM_CLIENTS").map(PathBuf::from);
    let is_whole = |tools: &PathBuf| tools.join(format!("{name}.whole")).exists();
    let there =
        tools.filter(|tools| is_whole(tools) && (name == "python" || Path::new(NODE).exists()));
    if there.is_none() {
        skipped(
            feature,
            &format!("clients/tools {name} was not run, or could not fetch all of it"),
        );
    }
    there.map(|tools| tools.join(name))
}

/// Whether this person can enter a directory. Who runs the tests by hand may keep it to themselves.
fn can_enter(place: &Place, directory: &Path, feature: &str) -> bool {
    let entered = outcome(place.host("/bin/ls").arg(directory), SOON).code() == Some(0);
    if !entered {
        assert_eq!(place.person, Person::Ordinary, "{}", directory.display());
        skipped(feature, "others cannot enter the directory of the clients");
    }
    entered
}

/// Runs the tests of a client, which start servers of their own.
fn tests_pass(place: &Place, program: &OsStr, words: &[&str], directory: &Path) -> Said {
    let mut command = place.host(program);
    command.args(words).current_dir(directory).env("TEST_COFFERDAM_BIN", place.program());
    let said = outcome(&mut command, SOON * 9);
    assert_eq!(said.code(), Some(0), "{}{}", said.text(), said.stderr);
    said
}

#[test]
fn the_python_client_passes_its_tests_and_examples() {
    let Some(python) = part("python", "python-client") else { return };
    everyone(|place| {
        if can_enter(place, &python, "python-client") {
            let words = ["-B", "-m", "unittest", "discover"];
            let tests = python.join("package/tests");
            let said = tests_pass(place, python.join("bin/python3").as_os_str(), &words, &tests);
            let ran = said.stderr.split("Ran ").nth(1).unwrap().split(' ').next().unwrap();
            assert!(ran.parse::<u32>().unwrap() > 20, "{}", said.stderr);
        }
    });
}

#[test]
fn the_typescript_client_passes_its_tests_and_examples() {
    let Some(typescript) = part("typescript", "typescript-client") else { return };
    everyone(|place| {
        if can_enter(place, &typescript, "typescript-client") {
            let words = ["--test", "--test-reporter=tap", "build/tests/"];
            let said = tests_pass(place, OsStr::new(NODE), &words, &typescript);
            let passed =
                said.text().lines().filter(|line| line.starts_with("# pass ")).collect::<String>();
            assert!(passed["# pass ".len()..].parse::<u32>().unwrap() > 15, "{}", said.text());
        }
    });
}

/// The inspector, and the server that it asks: words of a command, or an address.
struct Inspector<'a> {
    place: &'a Place,
    program: PathBuf,
    server: Vec<String>,
}

impl Inspector<'_> {
    /// What a method says, and the code of the program.
    fn ask(&self, words: &[&str]) -> (Option<i32>, Value) {
        let mut command = self.place.host(NODE);
        command.arg(&self.program).arg("--cli").args(&self.server).args(words);
        command.env("HOME", self.place.base.join("home"));
        command.env("MCP_STORAGE_DIR", self.place.base.join("home"));
        let said = outcome(&mut command, SOON * 3);
        let object = serde_json::from_slice(&said.stdout)
            .unwrap_or_else(|error| panic!("{error}: {words:?}: {}{}", said.text(), said.stderr));
        (said.code(), object)
    }

    /// What a tool that succeeds says.
    fn call(&self, tool: &str, arguments: &[&str]) -> Value {
        let (code, result) = self.call_any(tool, arguments);
        assert_eq!(code, Some(0), "{tool}: {result}");
        result["structuredContent"].clone()
    }

    fn call_any(&self, tool: &str, arguments: &[&str]) -> (Option<i32>, Value) {
        let mut words = vec!["--method", "tools/call", "--tool-name", tool];
        words.extend(arguments.iter().flat_map(|argument| ["--tool-arg", argument]));
        self.ask(&words)
    }

    /// Looks, runs, writes, reads, is refused, reads a resource, and goes. `sandbox` is what each call
    /// says of where.
    fn drives_a_session(&self, sandbox: &[&str]) {
        let and = |more: &[&'static str]| [sandbox, more].concat();
        // 6 is what it exits with where a client could not take the schema of a tool.
        let (code, listed) = self.ask(&["--method", "tools/list", "--strict"]);
        assert_eq!(code, Some(0));
        assert!(listed["tools"].as_array().unwrap().len() > 15, "{listed}");
        self.call("sandbox_ensure", sandbox);
        let ran = self.call("shell_exec", &and(&["command=echo one > made; echo done"]));
        assert_eq!(ran["stdout"]["text"], "done\n");
        self.call("file_write", &and(&["path=made", "content=two"]));
        assert_eq!(self.call("file_read", &and(&["path=made"]))["content"], "1|two");
        let (code, refused) = self.call_any("file_read", &and(&["path=../../etc/passwd"]));
        assert_eq!((code, &refused["isError"]), (Some(5), &Value::Bool(true)));
        assert_eq!(refused["_meta"]["cofferdam/error"]["kind"], "path_escape");
        let uri = "cofferdam://sandboxes/inspected/files/made";
        let (_, read) = self.ask(&["--method", "resources/read", "--uri", uri]);
        assert_eq!(read["contents"][0]["text"], "two");
        self.call("sandbox_delete", sandbox);
    }
}

#[test]
fn the_inspector_drives_a_whole_session_over_standard_input_and_output() {
    let Some(inspector) = part("inspector", "inspector") else { return };
    everyone(|place| {
        if can_enter(place, &inspector, "inspector") {
            // Each call is a connection of its own, so that the session has a name.
            // It passes few variables on.
            let state = format!("COFFERDAM_HOME={}", place.state.display());
            let server = ["env", &state, place.program(), "mcp"].map(str::to_owned);
            let named = ["--name", "inspected", "--no-workspace"].map(str::to_owned);
            let server = [server.as_slice(), &named].concat();
            let program = inspector.join("node_modules/.bin/mcp-inspector");
            let inspector = Inspector { place, program, server };
            inspector.drives_a_session(&[]);
            assert!(!place.says(&["ls", "--json"], 0).text().contains("inspected"));
        }
    });
}

#[test]
fn the_inspector_drives_a_whole_session_of_a_server_over_standard_input_and_output() {
    let Some(inspector) = part("inspector", "inspector") else { return };
    everyone(|place| {
        if can_enter(place, &inspector, "inspector") {
            let served = Served::new(place);
            let key = place.says(&["key", "create", "inspector"], 0).text();
            // Its own options are called as ours.
            let key = format!("COFFERDAM_KEY={}", key.trim());
            let url = format!("COFFERDAM_SERVER=http://{}", served.at);
            let server = ["env", &key, &url, place.program(), "mcp"].map(str::to_owned);
            let program = inspector.join("node_modules/.bin/mcp-inspector");
            let inspector = Inspector { place, program, server: server.to_vec() };
            inspector.drives_a_session(&["sandbox=inspected"]);
        }
    });
}

#[test]
fn the_inspector_drives_a_whole_session_over_http() {
    let Some(inspector) = part("inspector", "inspector") else { return };
    everyone(|place| {
        if can_enter(place, &inspector, "inspector") {
            let served = Served::new(place);
            let key = place.says(&["key", "create", "inspector"], 0).text();
            let header = format!("authorization: Bearer {}", key.trim());
            let address = format!("http://{}/mcp", served.at);
            let program = inspector.join("node_modules/.bin/mcp-inspector");
            let server = [&address, "--transport", "http", "--header", &header];
            let server = server.map(str::to_owned).to_vec();
            let inspector = Inspector { place, program, server };
            inspector.drives_a_session(&["sandbox=inspected"]);
            // Without the key there is nothing.
            let server = [&address, "--transport", "http"].map(str::to_owned).to_vec();
            let nobody = Inspector { server, ..inspector };
            let mut command = place.host(NODE);
            command.arg(&nobody.program).arg("--cli").args(&nobody.server);
            command.args(["--method", "tools/list"]).env("HOME", place.base.join("home"));
            assert_ne!(outcome(&mut command, SOON * 3).code(), Some(0));
        }
    });
}
