/** A server for tests: the program that TEST_COFFERDAM_BIN names, with a state of its own. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as asleep } from "node:timers/promises";

const PROGRAM = process.env["TEST_COFFERDAM_BIN"] ?? "cofferdam";
const SOON_MS = 60_000;

/** A server with a workspace. It ends with its sandboxes. */
export class Served implements AsyncDisposable {
  readonly base = mkdtempSync("/tmp/cofferdam-typescript-");
  readonly workspace = join(this.base, "workspace");
  url = "";
  readonly #env: NodeJS.ProcessEnv;
  #process: ChildProcess | undefined;

  private constructor(readonly options: readonly string[]) {
    mkdirSync(this.workspace);
    // Long before the first layer, so that it is no edit since.
    writeFileSync(join(this.workspace, "kept"), "old\n");
    const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("COFFERDAM_"));
    this.#env = { ...Object.fromEntries(kept), COFFERDAM_HOME: join(this.base, "state") };
  }

  static async start(listen = "127.0.0.1:0", ...options: string[]): Promise<Served> {
    const served = new Served(options);
    await served.#start(listen.replace("BASE", served.base));
    return served;
  }

  async #start(listen: string): Promise<void> {
    const log = join(this.base, "log");
    const out = openSync(log, "w");
    const words = ["serve", "--listen", listen, "--allow-workspace", this.workspace, ...this.options];
    const stdio: ["ignore", "ignore", number] = ["ignore", "ignore", out];
    this.#process = spawn(PROGRAM, words, { env: this.#env, cwd: this.workspace, stdio });
    closeSync(out);
    const giveUp = Date.now() + SOON_MS;
    let said = "";
    while (!said.includes("listening on ")) {
      if (this.#process.exitCode !== null || Date.now() > giveUp) throw new Error(said);
      await asleep(10);
      said = readFileSync(log, "utf8");
    }
    this.url = said.split("listening on ")[1]?.split(/\s/)[0] ?? "";
  }

  /** Kills it as a crash would. */
  kill(): Promise<void> {
    return this.#end("SIGKILL");
  }

  /** Starts one where it was. */
  again(): Promise<void> {
    return this.#start(this.url.replace("http://", ""));
  }

  /** What the command line says. */
  say(...words: string[]): string {
    return execFileSync(PROGRAM, words, { env: this.#env, cwd: this.workspace, encoding: "utf8" }).trim();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end("SIGTERM");
    const { sessions } = JSON.parse(this.say("ls", "--json")) as { sessions: { id: string }[] };
    if (sessions.length > 0) this.say("rm", ...sessions.map((session) => session.id));
    rmSync(this.base, { recursive: true });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await ended;
  }
}
