/** One sandbox. */

import { CofferdamError } from "./errors.js";
import { Exec, type Until } from "./execs.js";
import { Files } from "./files.js";
import { Network, Ports } from "./network.js";
import { Shell } from "./shells.js";
import { Snapshots } from "./snapshots.js";
import {
  type Command,
  type ExecOptions,
  type FilePath,
  Gathering,
  type Once,
  type Ran,
  type Schemas,
  commandOf,
  onceOf,
  place,
  places,
} from "./values.js";
import { type Wire, done, segment } from "./wire.js";

/** How much of each stream `run` keeps unless it is told otherwise. */
const CAPTURED_BYTES = 16 << 20;

/** Whether the end of a block deletes a sandbox. */
export type Lifetime = "block" | "own";

/** A sandbox of this caller. It stays until it is deleted, with its files, whoever looks at it. */
export class Sandbox implements AsyncDisposable {
  readonly files: Files;
  readonly snapshots: Snapshots;
  readonly network: Network;
  readonly ports: Ports;
  readonly #wire: Wire;
  readonly #lifetime: Lifetime;

  constructor(
    wire: Wire,
    /** What the server last said of it; `refresh` asks again. */
    public report: Schemas["SessionReport"],
    lifetime: Lifetime = "own",
  ) {
    this.#wire = wire;
    this.#lifetime = lifetime;
    this.files = new Files(wire, report.id);
    this.snapshots = new Snapshots(wire, report.id);
    this.network = new Network(wire, report.id);
    this.ports = new Ports(wire, report.id);
  }

  /** Its id, which no other ever has. */
  get id(): string {
    return this.report.id;
  }

  /** Its name, if it has one. */
  get name(): string | undefined {
    return this.report.name ?? undefined;
  }

  /** Its state when the server last spoke of it. */
  get phase(): Schemas["Phase"] {
    return this.report.phase;
  }

  get #params(): { path: { sandbox: string } } {
    return { path: { sandbox: this.id } };
  }

  /** At the end of `await using`: deletes it if `client.sandbox` made it for the block. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#lifetime === "block") await this.delete({ missingOk: true });
  }

  /** Asks how it stands. */
  async refresh(): Promise<Schemas["SessionReport"]> {
    const found = await this.#wire.api.GET("/v1/sandboxes/{sandbox}", { params: this.#params });
    return (this.report = done(found));
  }

  /** What it uses now, as the host sees it. Wakes nothing. */
  async metrics(): Promise<Schemas["MetricsReport"]> {
    return done(await this.#wire.api.GET("/v1/sandboxes/{sandbox}/metrics", { params: this.#params }));
  }

  /** Attacks a sandbox that is made as this one is, beside controls. Takes some seconds. */
  async proof(): Promise<Schemas["ProbeReport"]> {
    return done(await this.#wire.api.GET("/v1/sandboxes/{sandbox}/proof", { params: this.#params }));
  }

  /** Puts it to sleep: memory is kept, and nothing in it takes processor time. */
  async pause(): Promise<void> {
    this.report = done(await this.#wire.api.POST("/v1/sandboxes/{sandbox}/pause", { params: this.#params }));
  }

  /** Wakes it, or makes a new sandbox for it where the old one was lost. */
  async resume(): Promise<void> {
    this.report = done(await this.#wire.api.POST("/v1/sandboxes/{sandbox}/resume", { params: this.#params }));
  }

  /** Ends its processes. Its files stay, and `resume` goes on with them. */
  async stop(): Promise<void> {
    this.report = done(await this.#wire.api.POST("/v1/sandboxes/{sandbox}/stop", { params: this.#params }));
  }

  /** Lets it live so much longer. */
  async extend(byMs: number): Promise<void> {
    const asked = { params: this.#params, body: { by_ms: byMs } };
    this.report = done(await this.#wire.api.POST("/v1/sandboxes/{sandbox}/extend", asked));
  }

  /** Removes it, with its processes and its own files. Its workspace on the host stays. */
  async delete(options: { missingOk?: boolean } = {}): Promise<void> {
    try {
      await this.#wire.api.DELETE("/v1/sandboxes/{sandbox}", { params: this.#params });
    } catch (error) {
      const isGone = error instanceof CofferdamError && error.kind === "not_found";
      if (!isGone || !options.missingOk) throw error;
    }
  }

  /**
   * Starts a command: words, or a line of shell. The same `key` again, of at most 255 bytes, starts
   * nothing and gives the command that it started; so does the same `id`.
   */
  async exec(command: Command, options: ExecOptions & Once = {}): Promise<Exec> {
    const { key, ...wish } = options;
    // An id is a key by itself.
    const once = key ?? (wish.id == null ? crypto.randomUUID() : undefined);
    const started = await this.#wire.api.POST("/v1/sandboxes/{sandbox}/execs", {
      params: { ...this.#params, ...onceOf(once) },
      body: { ...wish, ...commandOf(command) },
    });
    return new Exec(this.#wire, this.id, done(started));
  }

  /**
   * Runs a command to its end, with what it writes: so much of each stream, the rest is counted. Where
   * `signal` aborts, the command is killed.
   */
  async run(command: Command, options: ExecOptions & { captureBytes?: number } & Until = {}): Promise<Ran> {
    const { captureBytes, signal, ...wish } = options;
    signal?.throwIfAborted();
    const exec = await this.exec(command, wish);
    const gathering = new Gathering(captureBytes ?? CAPTURED_BYTES);
    try {
      for await (const part of exec.output(signal ? { signal } : {})) gathering.take(part);
    } catch (error) {
      // One that has ended meanwhile is as good.
      if (signal?.aborted) await exec.kill().catch(() => {});
      throw error;
    }
    return gathering.ran(exec.report);
  }

  /** Its commands, oldest first. */
  async execs(): Promise<Exec[]> {
    const found = await this.#wire.api.GET("/v1/sandboxes/{sandbox}/execs", { params: this.#params });
    return done(found).execs.map((report) => new Exec(this.#wire, this.id, report));
  }

  /** A command that was started before, by its id. */
  async getExec(exec: string): Promise<Exec> {
    const params = { path: { sandbox: this.id, exec } };
    const found = await this.#wire.api.GET("/v1/sandboxes/{sandbox}/execs/{exec}", { params });
    return new Exec(this.#wire, this.id, done(found));
  }

  /** A shell that keeps directory and variables; the one of this name, if it lives. */
  async shell(name = "main"): Promise<Shell> {
    const params = { path: { sandbox: this.id, shell: name } };
    const opened = await this.#wire.api.PUT("/v1/sandboxes/{sandbox}/shells/{shell}", { params });
    return new Shell(this.#wire, this.id, done(opened));
  }

  /** Its shells, dead ones included. */
  async shells(): Promise<Shell[]> {
    const found = await this.#wire.api.GET("/v1/sandboxes/{sandbox}/shells", { params: this.#params });
    return done(found).shells.map((report) => new Shell(this.#wire, this.id, report));
  }

  /** What it changed in its copy-on-write workspace, or between two points, as in `3..7`. */
  async diff(points?: string, options: { path?: FilePath } = {}): Promise<Schemas["LayerChange"][]> {
    const query = {
      ...(points === undefined ? {} : { range: points }),
      ...(options.path === undefined ? {} : place(options.path)),
    };
    const params = { ...this.#params, query };
    // Without an `Accept` for text it is the object.
    const found = done(await this.#wire.api.GET("/v1/sandboxes/{sandbox}/diff", { params }));
    return (found as Schemas["ChangeList"]).changes;
  }

  /** The same as a patch that `git apply` takes. */
  async patch(points?: string, options: { path?: FilePath } = {}): Promise<Uint8Array> {
    const query = { range: points, ...(options.path === undefined ? {} : place(options.path)) };
    const headers = { accept: "text/x-diff" };
    const url = `/v1/sandboxes/${segment(this.id)}/diff`;
    return new Uint8Array(await (await this.#wire.raw("GET", url, { query, headers })).arrayBuffer());
  }

  /** What it changed part by part, each with the hash that `apply` takes. */
  async hunks(options: { path?: FilePath; texts?: boolean } = {}): Promise<Schemas["LayerHunks"][]> {
    const { path, ...texts } = options;
    const query = { ...texts, ...(path === undefined ? {} : place(path)) };
    const params = { ...this.#params, query };
    return done(await this.#wire.api.GET("/v1/sandboxes/{sandbox}/diff/hunks", { params })).changes;
  }

  /**
   * Lands what it changed in the workspace. What stays behind because it was edited there meanwhile is a
   * `conflict`, whose `result` lists both.
   */
  async apply(
    paths: FilePath[] = [],
    options: { hunks?: Schemas["ChosenWish"][]; dry_run?: boolean } = {},
  ): Promise<Schemas["AppliedChanges"]> {
    const asked = { params: this.#params, body: { ...places(paths), ...options } };
    return done(await this.#wire.api.POST("/v1/sandboxes/{sandbox}/apply", asked));
  }

  /** Forgets what it changed. */
  async discard(
    paths: FilePath[] = [],
    options: { dry_run?: boolean } = {},
  ): Promise<Schemas["DiscardedChanges"]> {
    const asked = { params: this.#params, body: { ...places(paths), ...options } };
    return done(await this.#wire.api.POST("/v1/sandboxes/{sandbox}/discard", asked));
  }

  /** The points of its history. */
  async history(options: { limit?: number } = {}): Promise<Schemas["HistoryReport"]> {
    const params = { ...this.#params, query: options };
    return done(await this.#wire.api.GET("/v1/sandboxes/{sandbox}/history", { params }));
  }

  /** Goes back before the last command, or the last `count`, or to a point. Its processes end. */
  async undo(wish: Schemas["UndoWish"] = {}): Promise<Schemas["UndoReport"]> {
    const asked = { params: this.#params, body: wish };
    return done(await this.#wire.api.POST("/v1/sandboxes/{sandbox}/undo", asked));
  }

  /**
   * Another sandbox that begins as this one is, or as it was at a point. The same `key` again makes
   * nothing and gives the one that was made, as long as the server lives.
   */
  async fork(name: string, point?: number | string, options: Once = {}): Promise<Sandbox> {
    const body = point === undefined ? { name } : { name, point: String(point) };
    const params = { ...this.#params, ...onceOf(options.key) };
    const made = await this.#wire.api.POST("/v1/sandboxes/{sandbox}/fork", { params, body });
    return new Sandbox(this.#wire, done(made));
  }

  /** Makes a point that stays until it is removed. */
  snapshot(label?: string, options: Once = {}): Promise<Schemas["SnapshotReport"]> {
    return this.snapshots.create(label, options);
  }
}
