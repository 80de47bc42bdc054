//! A client of the Model Context Protocol that knows nothing but lines of JSON.

use crate::place::{Place, SOON, Said, ended, started};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// Which protocol a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    /// It begins with a handshake.
    Handshake,
    /// Every request says what it needs to.
    Stateless,
}

/// A connection.
pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    generation: Generation,
    last: u64,
    /// Notifications that came while an answer was waited for.
    pub(crate) told: Vec<Value>,
}

impl Client {
    /// Starts `cofferdam mcp` with these words, and shakes hands where that is how it begins.
    pub(crate) fn start(place: &Place, words: &[&str], generation: Generation) -> Self {
        let words: Vec<&str> = [&["mcp"], words].concat();
        Self::of(place.cofferdam(&words), generation)
    }

    /// The same by a command that says more.
    pub(crate) fn of(mut command: Command, generation: Generation) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = started(&mut command);
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { return };
                // Standard output carries the protocol and nothing else.
                let message = serde_json::from_str(&line).unwrap_or_else(
                    |error| json!({ "no message": line, "error": error.to_string() }),
                );
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut client = Self { child, stdin, lines, generation, last: 0, told: Vec::new() };
        if generation == Generation::Handshake {
            let hello = client.shake_hands();
            assert_eq!(hello["protocolVersion"], "2025-11-25");
        }
        client
    }

    fn shake_hands(&mut self) -> Value {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let answer = self.ask("initialize", params);
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        answer["result"].clone()
    }

    /// Sends one message.
    pub(crate) fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    pub(crate) fn send_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).unwrap();
        stdin.write_all(b"\n").unwrap();
        stdin.flush().unwrap();
    }

    /// Sends a request, and says its id.
    pub(crate) fn request(&mut self, method: &str, mut params: Value) -> u64 {
        self.last += 1;
        if self.generation == Generation::Stateless {
            let meta = params.as_object_mut().unwrap().entry("_meta").or_insert_with(|| json!({}));
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientInfo"] = json!({ "name": "test", "version": "1" });
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        self.send(
            &json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params }),
        );
        self.last
    }

    /// The answer to a request: its result or its error.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next();
            assert_eq!(message["jsonrpc"], "2.0", "{message}");
            if message["id"] == id {
                return message;
            }
            assert!(message.get("id").is_none(), "an answer to nothing: {message}");
            self.told.push(message);
        }
    }

    pub(crate) fn next(&mut self) -> Value {
        self.lines.recv_timeout(SOON).expect("nothing is answered")
    }

    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    /// The result of a request that makes sense.
    pub(crate) fn result(&mut self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// What a call came to.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// The structured content of a call that succeeded.
    pub(crate) fn done(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{tool}: {result}");
        result["structuredContent"].clone()
    }

    /// The error of a call that did not.
    pub(crate) fn failed(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        assert!(result.get("structuredContent").is_none(), "{tool}: {result}");
        assert!(!result["content"][0]["text"].as_str().unwrap().is_empty(), "{tool}: {result}");
        result["_meta"]["cofferdam/error"].clone()
    }

    /// The server's process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Ends the stream, and waits for the server's end.
    pub(crate) fn close(mut self) -> Said {
        drop(self.stdin.take());
        self.wait()
    }

    /// Waits for the server's end.
    pub(crate) fn wait(self) -> Said {
        ended(self.child, SOON)
    }

    /// Lets go of both streams at once, as the kernel does for a client that was killed.
    pub(crate) fn vanish(self) -> Child {
        let Self { child, stdin, lines, .. } = self;
        drop((stdin, lines));
        child
    }
}
