/** What a sandbox may reach, and what reaches it. */

import assert from "node:assert/strict";
import { get } from "node:http";
import { after, before, test } from "node:test";
import { setTimeout as asleep } from "node:timers/promises";
import { Client, CofferdamError } from "@cofferdam/client";
import { Served } from "./served.js";

const SOON_MS = 60_000;
// Whoever connects is accepted, and cut off once it is refused.
const CONNECT = "import socket; assert socket.create_connection(('b.example.com', 443)).recv(1)";

let served: Served;
let client: Client;

before(async () => {
  const rules = ["--profile", "repo-write", "--egress", "*.example.com:443", "--ask", "60s"];
  served = await Served.start("127.0.0.1:0", ...rules);
  client = new Client({ url: served.url });
});

after(() => served[Symbol.asyncDispose]());

/** What is found, once it is there. */
async function soon<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (const giveUp = Date.now() + SOON_MS; ; await asleep(20)) {
    const found = await look();
    if (found !== undefined) return found;
    assert.ok(Date.now() < giveUp);
  }
}

/** The page of an address, if somebody answers with one. Its host is a name that leads here. */
function page(address: string): Promise<string | undefined> {
  const { host, port } = new URL(address);
  return new Promise((found, failed) => {
    get({ host: "127.0.0.1", port, path: "/", headers: { host } }, (answer) => {
      let said = "";
      answer.on("data", (part: Buffer) => (said += part.toString()));
      answer.on("end", () => found(answer.statusCode === 200 ? said : undefined));
    }).on("error", failed);
  });
}

test("rules change while a sandbox lives", async () => {
  await using box = await client.sandbox();
  const first = await box.network.show();
  assert.deepEqual(first.allow, ["*.example.com:443"]);
  const narrow = await box.network.set({ allow: ["a.example.com:443"], ask_ms: 0 });
  assert.deepEqual([narrow.allow, narrow.ask_ms], [["a.example.com:443"], 0]);
  assert.ok((await box.network.allow("b.example.com:443")).allow.includes("b.example.com:443"));
  const last = await box.network.deny("a.example.com:443");
  assert.deepEqual(last.deny, ["a.example.com:443"]);
  assert.ok(last.version > first.version);
  await assert.rejects(box.network.allow("*.com"), CofferdamError);
});

test("what waits is answered and told of", async () => {
  await using box = await client.sandbox();
  await box.network.set({ allow: ["a.example.com:443"] });
  const exec = await box.exec(["python3", "-c", CONNECT]);
  const waiting = await soon(async () => (await box.network.approvals())[0]);
  assert.deepEqual([waiting.host, waiting.port], ["b.example.com", 443]);
  await box.network.answer(waiting.id, "deny");
  assert.notEqual((await exec.wait()).exit_code, 0);
  const told: string[] = [];
  for await (const one of box.network.connections()) if (one.host === waiting.host) told.push(one.decision);
  assert.ok(told.includes("denied"));
  assert.ok((await box.metrics()).connections.denied >= 1);
});

test("a port has an address until it is closed", async () => {
  await using box = await client.sandbox();
  await box.files.write("index.html", "from inside");
  await box.exec(["python3", "-m", "http.server", "3000", "--bind", "127.0.0.1"], { detached: true });
  const opened = await box.ports.open(3000);
  assert.deepEqual((await box.ports.list()).map((one) => one.url), [opened.url]);
  assert.equal(await soon(() => page(opened.url)), "from inside");
  await box.ports.close(3000);
  assert.deepEqual(await box.ports.list(), []);
});
