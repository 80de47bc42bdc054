/**
 * An agent's work on a real directory, looked at before it lands. The server must allow the directory
 * (`cofferdam serve --allow-workspace /srv/project`).
 *
 *     node review.js http://127.0.0.1:7070 /srv/project
 *
 * Prints:
 *
 *     before: nothing
 *     made.txt: added
 *     after: made
 */

import { existsSync, readFileSync } from "node:fs";
import { Client } from "@cofferdam/client";

const [url = "", directory = ""] = process.argv.slice(2);
const made = `${directory}/made.txt`;
const client = new Client({ url });
await using box = await client.sandbox({ workspace: directory, copy_on_write: true });
(await box.run("echo made > made.txt")).check();
console.log("before:", existsSync(made) ? readFileSync(made, "utf8").trim() : "nothing");
for (const change of await box.diff()) console.log(`${change.path}: ${change.kind}`);
await box.apply(["made.txt"]);
console.log("after:", readFileSync(made, "utf8").trim());
