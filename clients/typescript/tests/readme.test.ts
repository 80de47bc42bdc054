/** Every block of the README is of right types, and runs. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Served } from "./served.js";

// This file is build/tests/readme.test.js when it runs.
const root = fileURLToPath(new URL("../..", import.meta.url));

/** What is the reader's own in the README, and what stands for it here. Each is in it. */
function here(served: Served, socket: string): [string, string][] {
  return [
    ["new Client();", `new Client({ url: "${served.url}" });`],
    ["/run/user/1000/cofferdam.sock", socket],
    ["npm test", "true"],
    ['"make fix"', '"mkdir -p src && echo fixed >src/made"'],
    ["/srv/project", served.workspace],
  ];
}

/** A block as a program, with what the blocks before it made. */
function program(block: string, url: string): string {
  const before = [];
  if (!block.includes("import { Client }")) before.push('import { Client } from "@cofferdam/client";');
  const hasClient = block.includes("const client =");
  const hasBox = block.includes(" box = ");
  if (!hasClient) before.push(`const client = new Client({ url: "${url}" });`);
  if (!hasBox && block.includes("box.")) before.push("await using box = await client.sandbox();");
  const after = hasClient ? ['if (!(await client.ready())) throw new Error("nobody is there");'] : [];
  return [...before, block, ...after, "export {};"].join("\n");
}

test("each block runs", async () => {
  await using served = await Served.start();
  await using over = await Served.start("unix:BASE/socket");
  let readme = readFileSync(join(root, "README.md"), "utf8");
  for (const [theirs, ours] of here(served, over.url.replace("unix:", ""))) {
    assert.ok(readme.includes(theirs), `the README has no ${theirs} any more`);
    readme = readme.replaceAll(theirs, ours);
  }
  const blocks = [...readme.matchAll(/^```typescript\n(.*?)^```$/gms)].map((found) => found[1] ?? "");
  assert.ok(blocks.length >= 4);
  const place = join(served.base, "readme");
  mkdirSync(join(place, "node_modules/@cofferdam"), { recursive: true });
  symlinkSync(root, join(place, "node_modules/@cofferdam/client"));
  symlinkSync(join(root, "node_modules/@types"), join(place, "node_modules/@types"));
  writeFileSync(join(place, "package.json"), '{ "type": "module" }');
  const names = blocks.map((block, number) => {
    writeFileSync(join(place, `block${number}.ts`), program(block, served.url));
    return `block${number}`;
  });
  const shared = { extends: join(root, "tsconfig.json"), include: ["*.ts"] };
  const own = { rootDir: ".", outDir: "out", declaration: false, noUnusedLocals: false };
  writeFileSync(join(place, "tsconfig.json"), JSON.stringify({ ...shared, compilerOptions: own }));
  const said = { encoding: "utf8", cwd: place } as const;
  execFileSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", place], said);
  const [first] = names.map((name) => execFileSync(process.execPath, [join(place, "out", `${name}.js`)], said));
  assert.equal(first, "hello\n\n");
});
