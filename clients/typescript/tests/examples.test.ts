/** Every example runs, and prints what it says at its top. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Served } from "./served.js";

// This file is build/tests/examples.test.js when it runs.
const root = fileURLToPath(new URL("../..", import.meta.url));

test("each prints what it says", async () => {
  await using served = await Served.start();
  const names = readdirSync(join(root, "examples")).filter((name) => name.endsWith(".ts"));
  assert.ok(names.length >= 3);
  for (const name of names) {
    const head = readFileSync(join(root, "examples", name), "utf8").split("*/")[0] ?? "";
    const says = head.split("Prints:\n *\n")[1] ?? "";
    const expected = says.split("\n").map((line) => line.replace(/^ \* {5}/, "")).filter((line) => line.trim());
    const program = join(root, "build/examples", name.replace(/ts$/, "js"));
    const said = execFileSync(process.execPath, [program, served.url, served.workspace], { encoding: "utf8" });
    assert.deepEqual(said.trimEnd().split("\n"), expected, name);
  }
});
