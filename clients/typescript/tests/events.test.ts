/** What needs no server. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, CofferdamError } from "@cofferdam/client";
import { EventReader, type StreamEvent } from "#part/events";
import { errorOf } from "#part/errors";
import { asBytes, place, places } from "#part/values";

test("events are put together from any pieces", () => {
  const bytes = new TextEncoder().encode(
    ": here\n\nevent: output\nid: 3.0\ndata: a\ndata:b\u2028c\r\n\r\nid: 9\n\ndata: d\n\n",
  );
  const expected = [
    { name: "output", id: "3.0", data: "a\nb\u2028c" },
    { name: "message", id: "", data: "d" },
  ];
  for (let size = 1; size < bytes.length; size += 1) {
    const reader = new EventReader();
    const found: StreamEvent[] = [];
    for (let at = 0; at < bytes.length; at += size) found.push(...reader.feed(bytes.slice(at, at + size)));
    assert.deepEqual(found, expected, String(size));
  }
});

test("an answer of somebody else is an error too", () => {
  assert.equal(errorOf(undefined, 502).kind, "unavailable");
  assert.equal(errorOf(["x"], 503).retryable, true);
  assert.equal(errorOf({ kind: 3 }, 500).kind, "protocol");
  const error = errorOf({ kind: "not_found", message: "no x", hint: "Look." }, 404, "7");
  assert.deepEqual([error.message, error.hint, error.requestId], ["no x", "Look.", "7"]);
});

test("an answer that is not as it should be is an error of this client", async () => {
  const asked = (text: string, kind: string): Promise<unknown> => {
    const answer = (): Promise<Response> =>
      Promise.resolve(new Response(text, { headers: { "content-type": kind } }));
    return new Client({ fetch: answer }).get("a");
  };
  const json = "application/json";
  const wrong = ["{", "[]", "null", ""].map((text) => [text, json] as const);
  for (const [text, kind] of [...wrong, ["<p>", "text/html"], ["a", "text/plain"]] as const) {
    await assert.rejects(asked(text, kind), (error) => {
      assert.ok(error instanceof CofferdamError, `${text}: ${String(error)}`);
      return error.kind === "protocol";
    });
  }
  // The control.
  await asked("{}", json);
});

test("paths and bytes", () => {
  assert.deepEqual(place(new TextEncoder().encode("a")), { path: "a" });
  assert.deepEqual(place(Uint8Array.of(0xff), "to"), { to_base64: "/w==" });
  assert.deepEqual(places(["a", Uint8Array.of(0xff)]), { paths: ["a"], paths_base64: ["/w=="] });
  assert.deepEqual([...asBytes("é"), ...asBytes(null, "/w==")], [0xc3, 0xa9, 0xff]);
});
