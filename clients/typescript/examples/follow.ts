/**
 * Several commands at once, each line as it comes.
 *
 *     node follow.js http://127.0.0.1:7070
 *
 * Prints:
 *
 *     first: 1
 *     first: 2
 *     second: 1
 *     second: 2
 */

import { Client, type Sandbox } from "@cofferdam/client";

async function lines(box: Sandbox, name: string): Promise<string[]> {
  const exec = await box.exec("for i in 1 2; do echo $i; sleep 0.1; done");
  const found = [];
  for await (const line of exec.lines()) found.push(`${name}: ${line}`);
  return found;
}

const client = new Client({ url: process.argv[2] ?? "http://127.0.0.1:7070" });
await using box = await client.sandbox();
for (const one of await Promise.all([lines(box, "first"), lines(box, "second")])) {
  console.log(one.join("\n"));
}
