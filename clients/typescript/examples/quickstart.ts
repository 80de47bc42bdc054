/**
 * A command in a sandbox, and what it wrote.
 *
 *     node quickstart.js http://127.0.0.1:7070
 *
 * Prints:
 *
 *     hello from inside
 *     no such file: exit code 1
 */

import { Client } from "@cofferdam/client";

const client = new Client({ url: process.argv[2] ?? "http://127.0.0.1:7070" });
await using box = await client.sandbox();
await box.files.write("hello.sh", "echo hello from inside\n");
process.stdout.write((await box.run(["sh", "hello.sh"])).check().text);
const ran = await box.run("cat ~/.ssh/id_ed25519");
if (new TextDecoder().decode(ran.stderr).includes("No such file")) {
  console.log(`no such file: exit code ${ran.exitCode}`);
}
