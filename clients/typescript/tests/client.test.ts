/** The client against a real server. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Client, CofferdamError, CommandFailed, type FilePath, type Output, type Schemas } from "@cofferdam/client";
import { Terminal } from "@cofferdam/client/terminal";
import { unixFetch } from "@cofferdam/client/unix";
import { Served } from "./served.js";

let served: Served;
let client: Client;

before(async () => {
  served = await Served.start();
  client = new Client({ url: served.url, reconnectMs: 60_000 });
});

after(() => served[Symbol.asyncDispose]());

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

function isOf(kind: string, status?: number): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof CofferdamError, String(error));
    assert.equal(error.kind, kind, error.message);
    if (status !== undefined) assert.equal(error.status, status);
    return true;
  };
}

async function all(pieces: AsyncIterable<Uint8Array>): Promise<string> {
  let found = "";
  for await (const piece of pieces) found += text(piece);
  return found;
}

test("a name leads to no other route", async () => {
  await using box = await client.sandbox();
  const exec = await box.exec("true");
  for (const name of ["..", ".", ""]) {
    const asked: (() => Promise<unknown>)[] = [
      () => client.get(name),
      () => client.ensure(name),
      () => client.removeSecret(name),
      () => client.putSecret(name, "x"),
      () => client.tools(name),
      () => box.getExec(name),
      () => box.shell(name),
      async () => new Terminal(name, exec).open(),
    ];
    for (const ask of asked) {
      await assert.rejects(ask, (error) => {
        // Nothing was asked.
        return isOf("not_found")(error) && (error as CofferdamError).status === undefined;
      }, `${name}: ${ask}`);
    }
  }
  assert.equal((await client.get(box.id)).id, box.id);
});

test("a sandbox of a block ends with it, and one that was there stays", async () => {
  const labels = { for: "tests", of: "a,b=c\\d" };
  const made = await client.ensure("stays", { labels });
  let id = "";
  {
    await using box = await client.sandbox();
    assert.equal((await box.run(["echo", "hello"])).check().text, "hello\n");
    id = box.id;
    await using same = await client.sandbox({ name: "stays", labels });
    assert.equal(same.id, made.id);
  }
  await assert.rejects(client.get(id), isOf("not_found", 404));
  const names = [];
  for await (const box of client.sandboxes(labels)) names.push(box.name);
  assert.deepEqual(names, ["stays"]);
  await made.delete();
  await made.delete({ missingOk: true });
});

test("output comes as it is written, byte for byte", async () => {
  await using box = await client.sandbox();
  const line = "printf 'a\\342\\200\\250b\\n'; printf '\\377\\0' >&2; cat; exit 3";
  const exec = await box.exec(line, { stdin: true });
  const kept: Record<Output["stream"], number[]> = { stdout: [], stderr: [] };
  let isFirst = true;
  for await (const part of exec.output()) {
    assert.equal(part.offset, kept[part.stream].length);
    kept[part.stream].push(...part.data);
    if (isFirst) {
      await exec.send("more");
      await exec.closeInput();
      isFirst = false;
    }
  }
  assert.equal(text(Uint8Array.from(kept.stdout)), "a\u2028b\nmore");
  assert.deepEqual(kept.stderr, [0xff, 0]);
  assert.deepEqual([exec.exitCode, exec.hasEnded], [3, true]);
  const lines = [];
  for await (const one of exec.lines()) lines.push(one);
  assert.deepEqual(lines, ["a\u2028b", "more"]);
  assert.equal(text(await exec.read("stdout", 6, 2)), "mo");
});

test("a run has all, and counts what it leaves out", async () => {
  await using box = await client.sandbox();
  const ran = await box.run("head -c 100000 /dev/zero; echo no >&2; exit 4", { captureBytes: 10 });
  assert.deepEqual([ran.stdout.length, ran.omitted], [10, { stdout: 99_990, stderr: 0 }]);
  assert.throws(() => ran.check(), (error) => error instanceof CommandFailed && /code 4: no/.test(error.message));
  for (const never of [await box.run(["no-such"]), await client.run(["no-such"])]) {
    assert.throws(() => never.check(), (error) => {
      return error instanceof CommandFailed && /code 127: .*no-such/.test(error.message) && !!error.detail;
    });
  }
  const late = await box.run(["sleep", "100"], { timeout_ms: 50 });
  assert.deepEqual([late.ending, late.exitCode], ["timed_out", 124]);
  const once = await client.run("echo $X; cat /nothing", { env: { X: "1" } });
  assert.deepEqual([once.text, once.exitCode], ["1\n", 1]);
});

test("a key starts a command once", async () => {
  await using box = await client.sandbox();
  const first = await box.exec("echo x >> ran", { key: "once" });
  await first.wait();
  assert.equal((await box.exec("echo x >> ran", { key: "once" })).id, first.id);
  assert.equal(await box.files.readText("ran"), "x\n");
  await assert.rejects(box.exec("echo y", { key: "once" }), isOf("conflict", 409));
  assert.deepEqual((await box.execs()).map((exec) => exec.id), [first.id]);
});

test("what is made with a key is made once", async () => {
  const labels = { for: "keys" };
  const made = await client.create({ key: "made", labels });
  assert.equal((await client.create({ key: "made", labels })).id, made.id);
  await assert.rejects(client.create({ key: "made" }), isOf("conflict", 409));
  await made.delete();
  const fresh = "cat /proc/sys/kernel/random/uuid";
  const ran = await client.run(fresh, { key: "ran" });
  assert.equal((await client.run(fresh, { key: "ran" })).text, ran.check().text);
  assert.notEqual((await client.run(fresh)).text, ran.text);
});

test("a command has its id, its secrets and a receipt", async () => {
  await client.putSecret("GIVEN", "a-value");
  const manifest = { version: 1, entries: [{ type: "file" as const, path: "given", text: "x" }] };
  await using box = await client.sandbox({ workspace: served.workspace, copy_on_write: true, manifest });
  assert.equal(await box.files.readText("given"), "x");
  const options = { id: "named", secret_files: ["GIVEN"], receipt: true };
  const line = "wc -c < /run/secrets/GIVEN; echo y > made";
  assert.equal((await box.run(line, options)).check().text, "7\n");
  assert.equal((await box.exec(line, options)).id, "named");
  const receipt = await (await box.getExec("named")).receipt();
  assert.deepEqual(receipt.seen_by_host.files.added.map((one) => one.path), ["made"]);
  await client.removeSecret("GIVEN");
  const kept = await client.run("exit 3", { on_failure: "stop", max_output_bytes: 100, id: "once" });
  const { session } = kept.report as Schemas["RunReport"];
  assert.ok(session);
  await (await client.get(session)).delete();
});

test("a command is killed where its run is given up", async () => {
  await using box = await client.sandbox();
  const stays = await box.exec(["sleep", "100"]);
  const signal = AbortSignal.timeout(500);
  await assert.rejects(box.run(["sleep", "101"], { signal }), { name: "TimeoutError" });
  await assert.rejects(box.run(["sleep", "102"], { signal }), { name: "TimeoutError" });
  const [, killed, ...others] = await box.execs();
  assert.equal((await killed?.wait({ signal: AbortSignal.timeout(30_000) }))?.exit_code, 137);
  assert.deepEqual(others, []);
  assert.equal((await stays.refresh()).ended_ms, null);
  const shell = await box.shell();
  await assert.rejects(shell.run("sleep 103", { signal: AbortSignal.timeout(500) }), { name: "TimeoutError" });
  for (;;) {
    const again = await shell.run("echo free").catch((error: unknown) => isOf("conflict")(error));
    if (again !== true) break;
  }
});

test("a stream that there is not has no lines", async () => {
  await using box = await client.sandbox();
  const exec = await box.exec("echo x");
  await assert.rejects(exec.lines("foo" as "stdout").next(), isOf("usage"));
});

test("signals, terminals, and waits that are given up", async () => {
  await using box = await client.sandbox();
  const sleeps = await box.exec(["sleep", "100"]);
  await assert.rejects(sleeps.wait({ signal: AbortSignal.timeout(50) }), { name: "TimeoutError" });
  await sleeps.signal();
  assert.equal((await sleeps.wait()).exit_code, 128 + 15);
  const line = "read x; until stty size | grep '7 50'; do sleep 0.01; done";
  const terminal = { rows: 5, columns: 40 };
  const shows = await box.exec(line, { terminal, stdin: true, timeout_ms: 60_000 });
  await shows.resize({ rows: 7, columns: 50 });
  await shows.send("\n");
  let said = "";
  for await (const part of shows.output()) said += part.text;
  assert.match(said, /7 50/);
});

test("secrets are names alone", async () => {
  assert.equal((await client.putSecret("TOKEN", "a-value")).name, "TOKEN");
  await client.putSecret("TOKEN", new TextEncoder().encode("another"));
  assert.deepEqual((await client.secrets()).map((secret) => secret.name), ["TOKEN"]);
  await client.removeSecret("TOKEN");
  await assert.rejects(client.removeSecret("TOKEN"), isOf("not_found", 404));
});

test("a terminal outlives its connection and its server", async () => {
  await using box = await client.sandbox();
  const line = "stty size; until [ -e go ]; do sleep 0.01; done; stty size; echo two; read x; exit $x";
  const exec = await box.exec(line, { terminal: { rows: 5, columns: 40 }, stdin: true });
  const terminal = new Terminal(box.id, exec, { url: served.url, reconnectMs: 60_000 });
  const output = terminal[Symbol.asyncIterator]();
  let said = "";
  const until = async (part: string): Promise<void> => {
    while (!said.includes(part)) {
      const { value, done } = await output.next();
      assert.ok(!done, said);
      said += new TextDecoder().decode(value as Uint8Array);
    }
  };
  await until("5 40");
  await terminal.resize({ rows: 7, columns: 50 });
  await box.files.write("go", "");
  await until("two\r\n");
  assert.match(said, /7 50/);
  await served.kill();
  await served.again();
  // Nothing is told twice to who comes back.
  terminal.close();
  await terminal.send("6\n");
  for (let next = await output.next(); !next.done; next = await output.next()) {
    said += new TextDecoder().decode(next.value);
  }
  assert.equal(exec.exitCode, 6);
  assert.equal(said, text(await exec.read("stdout")));
  assert.equal(terminal.offset, said.length);
});

test("a terminal is typed at again after its connection broke", async () => {
  await using box = await client.sandbox();
  const exec = await box.exec("cat", { terminal: { rows: 5, columns: 40 }, stdin: true });
  const terminal = new Terminal(box.id, exec, { url: served.url, reconnectMs: 60_000 });
  await terminal.send("one\n");
  await served.kill();
  await served.again();
  let failed = 0;
  for (let number = 0; number < 20; number += 1) {
    await terminal.send("two\n").catch((error: unknown) => {
      isOf("unavailable")(error);
      failed += 1;
    });
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.ok(failed <= 2, String(failed));
  await terminal.send("three\n");
  let said = "";
  for await (const piece of terminal) {
    said += text(piece);
    if (said.includes("three\r\nthree\r\n")) await exec.signal("TERM");
  }
  assert.equal(said, text(await exec.read("stdout")));
  assert.ok(exec.hasEnded);
});

test("an archive that is not whole is an error", async () => {
  await using box = await client.sandbox();
  for (const name of ["a", "b", "c", "d"]) await box.files.write(`d/${name}`, "x".repeat(1_000_000));
  const archive = await box.files.export("d", { maxBytes: 2_500_000 });
  const read = async (): Promise<void> => {
    for await (const _ of archive as unknown as AsyncIterable<Uint8Array>);
  };
  await assert.rejects(read(), (error: CofferdamError) => {
    assert.equal(error.kind, "unavailable");
    assert.match(error.message, /broke off/);
    return error.hint !== undefined;
  });
});

test("files", async () => {
  await using box = await client.sandbox();
  const { files } = box;
  const made = await files.write("a/b.txt", "one\ntwo\n");
  assert.equal(made.created, true);
  assert.equal(text(await files.read("a/b.txt", { offset: 2, length: 3 })), "e\nt");
  await assert.rejects(files.write("a/b.txt", "x", { ifMatch: "0".repeat(64) }), isOf("conflict", 412));
  await assert.rejects(files.write("a/b.txt", "x", { ifAbsent: true }), isOf("conflict", 412));
  const stream = new Blob(["three\n"]).stream() as ReadableStream<Uint8Array>;
  await files.write("a/b.txt", stream, { ifMatch: made.sha256 ?? "", mode: "600" });
  assert.equal((await files.stat("a/b.txt")).mode, "600");
  await files.append("a/b.txt", "four\n");
  assert.equal((await files.lines("a/b.txt", { offset: 1 })).content, "2|four");
  await assert.rejects(files.edit("a/b.txt", [{ old: "nothing", new: "x" }]), (error) => {
    assert.ok(error instanceof CofferdamError);
    const result = error.result as { report: { edits: { outcome: string }[] } };
    assert.equal(result.report.edits[0]?.outcome, "not_found");
    return true;
  });
  assert.equal((await files.edit("a/b.txt", [{ old: "four", new: "five" }])).changed, true);
  await files.patch("--- a/a/b.txt\n+++ b/a/b.txt\n@@ -1 +1 @@\n-three\n+3\n");
  assert.equal(await all(await files.download("a/b.txt")), "3\nfive\n");
  await files.copy("a/b.txt", "a/c.txt");
  await files.move("a/c.txt", "a/d.txt");
  await files.mkdir("a/e");
  await files.chmod("a/d.txt", "640");
  const names = [];
  for await (const entry of files.list("a")) names.push(entry.path);
  assert.equal(names.length, 3);
  assert.equal((await files.glob("**/*.txt", { kinds: ["file"] })).length, 2);
  assert.equal((await files.grep("f.ve", { paths: ["a"], case: "sensitive" })).matches, 2);
  const archive = await all(await files.export("a"));
  assert.equal((await files.import("copy", new TextEncoder().encode(archive))).files, 2);
  await files.remove("a", { recursive: true });
  await assert.rejects(files.stat("a"), isOf("not_found"));
});

test("a part of a file is that part", async () => {
  await using box = await client.sandbox();
  const { files } = box;
  await files.write("six", "abcdef");
  await files.write("none", "");
  const parts: [string, { offset?: number; length?: number }, string][] = [
    ["six", { offset: 4 }, "ef"],
    ["six", { offset: 1, length: 2 }, "bc"],
    ["six", { offset: 4, length: 100 }, "ef"],
    ["six", { length: 2 }, "ab"],
    ["six", { offset: 2, length: 0 }, ""],
    ["six", { offset: 6 }, ""],
    ["six", { offset: 7, length: 1 }, ""],
    ["none", { length: 100 }, ""],
    ["none", { offset: 1 }, ""],
    ["none", {}, ""],
  ];
  for (const [path, part, expected] of parts) assert.equal(text(await files.read(path, part)), expected);
  const odd = "1" as unknown as number;
  const wrong = [{ offset: -2 }, { length: -2 }, { offset: 3, length: -2 }, { offset: 0.5 }, { offset: NaN }, { length: odd }];
  for (const part of wrong) await assert.rejects(files.read("six", part), isOf("usage"), JSON.stringify(part));
  for (const length of [0, 1]) await assert.rejects(files.read("missing", { length }), isOf("not_found", 404));
});

test("arguments that cannot be are errors of this client", async () => {
  await using box = await client.sandbox();
  await box.files.write("kept", "x");
  const not = undefined as unknown as string;
  const holdsItself: Record<string, unknown> = {};
  holdsItself["self"] = holdsItself;
  const sat = await box.exec("cat", { stdin: true, terminal: { rows: 5, columns: 40 } });
  const asked: (() => Promise<unknown>)[] = [
    () => client.create({ ttl_ms: 5n as unknown as number }),
    () => client.create({ labels: holdsItself as Record<string, string> }),
    () => client.callTool("cofferdam", "sandbox_status", holdsItself),
    async () => new Terminal(box.id, sat, { url: "127.0.0.1:7070" }),
    async () => new Terminal(box.id, sat, { key: "cfd_1\nsecret" }),
    async () => new Terminal(box.id, sat, { offset: -1 }),
    async () => new Terminal(box.id, sat, { offset: 5n as unknown as number }),
    async () => new Terminal(box.id, sat, { socketPath: 5 as unknown as string }),
    () => new Terminal(box.id, sat, { url: served.url }).resize({ rows: 5n as unknown as number, columns: 4 }),
    async () => new Client({ url: "ftp://x" }),
    async () => new Client({ url: "127.0.0.1:7070" }),
    async () => new Client({ url: "http://x:99999" }),
    async () => new Client({ key: "cfd_1\nsecret" }),
    () => box.exec("true", { key: "a\nb" }),
    () => client.create({ key: "a\0b" }),
    () => client.run("true", { key: "\u2028" }),
    () => client.run(not),
    () => box.run(["echo", not]),
    () => box.run({} as unknown as string),
    () => box.files.write("kept", "y", { ifMatch: "a\nb" }),
    () => box.files.remove(not, { recursive: true }),
    () => box.files.read(null as unknown as string),
  ];
  for (const ask of asked) {
    await assert.rejects(ask, (error) => {
      const told = error as CofferdamError;
      return isOf("usage")(error) && !told.retryable && !!told.hint && !told.message.includes("secret");
    }, String(ask));
  }
  assert.equal(await box.files.readText("kept"), "x");
});

test("what is no content empties no file", async () => {
  await using box = await client.sandbox();
  const { files } = box;
  await files.write("kept", "precious");
  const reads = await box.exec("cat", { stdin: true });
  const sat = await box.exec("cat", { stdin: true, terminal: { rows: 5, columns: 40 } });
  const terminal = new Terminal(box.id, sat, { url: served.url });
  for (const nothing of [null, undefined, {}, [], [1], 7, () => "x", new URLSearchParams("a=b")]) {
    const it = nothing as unknown as Uint8Array;
    const asked: (() => Promise<unknown>)[] = [
      () => files.write("kept", it),
      () => files.append("kept", it),
      () => files.import("kept", it, { replace: true }),
      () => files.patch(it),
      () => box.snapshots.import(it),
      () => client.putSecret("NOTHING", it),
      () => reads.send(it, { close: true }),
      () => terminal.send(it),
    ];
    for (const ask of asked) {
      await assert.rejects(ask, (error) => isOf("usage")(error) && /content/.test(String(error)), `${it}: ${ask}`);
    }
  }
  assert.equal(await files.readText("kept"), "precious");
  assert.deepEqual(await client.secrets(), []);
  // What is bytes by another name is taken, and so is nothing that is meant.
  const bytes = new TextEncoder().encode("awesome");
  for (const data of [Buffer.from("some"), new DataView(bytes.buffer, 3), bytes.slice(3).buffer, new Blob(["some"])]) {
    await files.write("taken", data as unknown as Uint8Array);
    assert.equal(await files.readText("taken"), "some");
  }
  for (const empty of ["", new Uint8Array(), new Blob([]).stream() as ReadableStream<Uint8Array>]) {
    assert.equal((await files.write("taken", empty)).bytes, 0);
  }
});

test("names that are no text", async () => {
  await using box = await client.sandbox();
  const name: FilePath = Uint8Array.of(0xff, 0x0a);
  await box.files.write(name, "odd");
  assert.equal(await box.files.readText(name), "odd");
  for await (const entry of box.files.list()) assert.equal(entry.path_base64, btoa("\xff\n"));
});

test("a watch tells what happens", async () => {
  await using box = await client.sandbox();
  for await (const event of box.files.watch()) {
    if (event.event === "ready") await box.files.write("seen", "");
    if (event.path === "seen") break;
  }
});

test("layers and points", async () => {
  await using box = await client.sandbox({ workspace: served.workspace, copy_on_write: true });
  (await box.run("echo new > kept; echo x > added")).check();
  assert.deepEqual((await box.diff()).map((change) => change.path).sort(), ["added", "kept"]);
  assert.match(text(await box.patch(undefined, { path: "kept" })), /\+new/);
  assert.equal((await box.hunks({ path: "kept" }))[0]?.hunks.length, 1);
  const taken = await box.snapshot("tested");
  const other = await box.fork("other", "tested");
  assert.equal(await other.files.readText("kept"), "new\n");
  await other.delete();
  const file = await box.snapshots.export("tested");
  assert.equal((await box.snapshots.import(file, "again")).snapshot.label, "again");
  assert.equal((await box.snapshots.list()).length, 2);
  (await box.run("rm kept")).check();
  await box.undo();
  assert.equal(await box.files.readText("kept"), "new\n");
  await box.snapshots.restore(taken.snapshot);
  assert.ok((await box.history()).points.length > 2);
  await box.snapshots.remove("again");
  assert.equal((await box.apply(["kept"])).applied.length, 1);
  assert.equal((await box.discard()).discarded.length, 1);
  assert.equal(readFileSync(join(served.workspace, "kept"), "utf8"), "new\n");
});

test("a shell keeps its state", async () => {
  await using box = await client.sandbox();
  const shell = await box.shell();
  await shell.run("cd /tmp; x=1");
  const { output, exitCode } = await shell.run("pwd; echo $x; false");
  assert.deepEqual([text(output), exitCode], ["/tmp\n1\n", 1]);
  const much = await shell.run("head -c 700000 /dev/zero | tr '\\0' a");
  assert.deepEqual([much.output.length, much.exitCode], [700_000, 0]);
  assert.deepEqual((await box.shells()).map((one) => one.name), ["main"]);
  await shell.terminate();
});

test("events are told again", async () => {
  await using box = await client.sandbox({ ttl_ms: 600_000 });
  const told = [];
  for await (const event of client.events({ sandbox: box.id, follow: false })) told.push(event.kind);
  assert.ok(told.includes("provisioned"), String(told));
  await box.pause();
  assert.equal(box.phase, "paused");
  await box.resume();
  await box.extend(1000);
  const seen = [];
  for await (const event of client.events({ sandbox: box.id })) {
    seen.push(event);
    if (event.kind === "resumed") break;
  }
  assert.deepEqual(seen.slice(0, told.length).map((event) => event.kind), told);
  for await (const event of client.events({ sandbox: box.id, after: seen[0]?.seq ?? 0 })) {
    assert.equal(event.seq, seen[1]?.seq);
    break;
  }
  await box.stop();
});

test("tools", async () => {
  await using box = await client.sandbox();
  const pack = await client.tools("cofferdam");
  assert.ok(pack.tools.some((tool) => tool.name === "shell_exec"));
  const args = { sandbox: box.id, command: "echo hi" };
  assert.match((await client.callTool("cofferdam", "shell_exec", args)).text, /hi/);
  assert.equal((await client.callTool("cofferdam", "shell_exec", {})).is_error, true);
});

test("errors say what the server said", async () => {
  await assert.rejects(client.get("nobody"), (error) => {
    assert.ok(error instanceof CofferdamError);
    assert.deepEqual([error.kind, error.status, error.retryable], ["not_found", 404, false]);
    assert.match(error.message, /nobody/);
    assert.ok(error.requestId);
    return true;
  });
  await assert.rejects(client.create({ workspace: "/" }), isOf("denied", 403));
  const nobody = new Client({ url: "http://127.0.0.1:1" });
  assert.equal(await nobody.ready(), false);
  await assert.rejects(nobody.create(), isOf("unavailable"));
});

test("a Unix socket", async () => {
  await using other = await Served.start("unix:BASE/socket");
  const fetch = unixFetch(join(other.base, "socket"));
  const there = new Client({ url: "http://localhost", fetch });
  await using box = await there.sandbox();
  assert.equal((await box.run("cat", { stdin: false })).exitCode, 0);
  await box.files.write("a", "x".repeat(1 << 20));
  assert.equal((await box.files.read("a")).length, 1 << 20);
  for await (const event of there.events()) {
    assert.ok(event.seq > 0);
    break;
  }
});

test("keys", async () => {
  await using other = await Served.start();
  const key = other.say("key", "create", "ci");
  await assert.rejects(new Client({ url: other.url }).create(), isOf("denied", 401));
  const known = new Client({ url: other.url, key });
  await using box = await known.sandbox();
  assert.equal(box.report.owner, "ci");
  assert.ok((await known.audit()).some((entry) => entry.key));
});

test("output goes on where a killed server broke off", async () => {
  await using other = await Served.start();
  const there = new Client({ url: other.url, reconnectMs: 60_000 });
  await using box = await there.sandbox();
  const exec = await box.exec("for i in 1 2 3; do echo $i; done; cat; echo end", { stdin: true });
  let got = "";
  for await (const part of exec.output()) {
    if (got === "") {
      await other.kill();
      await other.again();
      await exec.send("more\n", { close: true });
    }
    got += part.text;
  }
  assert.equal(got, "1\n2\n3\nmore\nend\n");
  assert.equal(exec.exitCode, 0);
  // A command whose answer was lost is not started twice: its key is sent again.
  await other.kill();
  const late = box.run("echo x >> ran; cat ran");
  await other.again();
  assert.equal((await late).text, "x\n");
});
