/** A command of a sandbox. */

import { unfit } from "./errors.js";
import { type Output, type Schemas, type StreamName, asBytes, contentOf, outputOf } from "./values.js";
import { type Wire, done, parsed, segment } from "./wire.js";

const LONGEST_WAIT_MS = 60_000;

/** What ends a wait or a stream early. */
export interface Until {
  signal?: AbortSignal;
}

/** A command. It goes on whether anybody looks at it or not; what it wrote can be read after its end. */
export class Exec {
  readonly #wire: Wire;
  readonly #sandbox: string;

  constructor(
    wire: Wire,
    sandbox: string,
    /** What the server last said of it; `refresh` asks again. */
    public report: Schemas["ExecReport"],
  ) {
    this.#wire = wire;
    this.#sandbox = sandbox;
  }

  /** Its id in its sandbox. */
  get id(): string {
    return this.report.id;
  }

  /** Its exit code, once the end was seen. */
  get exitCode(): number | undefined {
    return this.report.exit_code ?? undefined;
  }

  /** Whether the end was seen. */
  get hasEnded(): boolean {
    return typeof this.report.ended_ms === "number";
  }

  get #path(): { path: { sandbox: string; exec: string } } {
    return { path: { sandbox: this.#sandbox, exec: this.id } };
  }

  get #url(): string {
    return `/v1/sandboxes/${segment(this.#sandbox)}/execs/${segment(this.id)}`;
  }

  /** Asks how it stands. */
  async refresh(): Promise<Schemas["ExecReport"]> {
    const found = this.#wire.api.GET("/v1/sandboxes/{sandbox}/execs/{exec}", { params: this.#path });
    return (this.report = done(await found));
  }

  /** What it did, once it has ended; what it did to files where it was started with `receipt`. */
  async receipt(): Promise<Schemas["Receipt"]> {
    const found = this.#wire.api.GET("/v1/sandboxes/{sandbox}/execs/{exec}/receipt", { params: this.#path });
    return done(await found);
  }

  /** Waits for its end. */
  async wait(until: Until = {}): Promise<Schemas["ExecReport"]> {
    const query = { timeout_ms: LONGEST_WAIT_MS };
    let goesOn = "false";
    do {
      const found = this.#wire.api.GET("/v1/sandboxes/{sandbox}/execs/{exec}/wait", {
        // Who paused the sandbox meanwhile means it.
        params: { ...this.#path, query, header: { "cofferdam-goes-on": goesOn } },
        ...(until.signal ? { signal: until.signal } : {}),
      });
      goesOn = "true";
      this.report = done(await found);
    } while (!this.hasEnded);
    return this.report;
  }

  /**
   * What it writes as it comes, from these places on, to its end. A server that goes away in the middle is
   * waited for, and nothing is missed or told twice. Then `report` has the end.
   */
  async *output(
    from: { stdout?: number; stderr?: number } & Until = {},
  ): AsyncGenerator<Output, void, undefined> {
    const query = { stdout: from.stdout, stderr: from.stderr };
    for await (const event of this.#wire.resumed(`${this.#url}/stream`, { query, signal: from.signal })) {
      if (event.name === "output") yield outputOf(parsed<Schemas["LogPart"]>(event.data));
      if (event.name === "end") {
        this.report = parsed<Schemas["ExecReport"]>(event.data);
        return;
      }
    }
  }

  /** One of its streams line by line, without line feeds. */
  async *lines(stream: StreamName = "stdout", until: Until = {}): AsyncGenerator<string, void, undefined> {
    if (stream !== "stdout" && stream !== "stderr") {
      throw unfit(`${String(stream)} is no stream of a command`, "Give stdout or stderr.");
    }
    const decoder = new TextDecoder();
    let rest = "";
    for await (const part of this.output(until)) {
      if (part.stream !== stream) continue;
      const lines = (rest + decoder.decode(part.data, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      yield* lines;
    }
    rest += decoder.decode();
    if (rest) yield rest;
  }

  /** What there is of a stream from a place on, of at most 256 KiB; nothing where nothing is yet. */
  async read(stream: StreamName = "stdout", offset = 0, limit = 262_144): Promise<Uint8Array> {
    const found = this.#wire.api.GET("/v1/sandboxes/{sandbox}/execs/{exec}/output", {
      params: { ...this.#path, query: { stream, offset, limit } },
    });
    const part = done(await found);
    return asBytes(part.text, part.base64);
  }

  /** Sends input to a command that was started with `stdin`; with `close` that was all. */
  async send(data: string | Uint8Array, options: { close?: boolean } = {}): Promise<void> {
    await this.#wire.raw("POST", `${this.#url}/stdin`, {
      query: { close: options.close ?? false },
      headers: { "content-type": "application/octet-stream" },
      body: contentOf(data) as BodyInit,
    });
  }

  /** Ends its input. */
  closeInput(): Promise<void> {
    return this.send("", { close: true });
  }

  /** Sends it a signal, by its name or its number; if it has ended, to all that it left. */
  async signal(signal: string | number = "TERM"): Promise<void> {
    await this.#wire.api.POST("/v1/sandboxes/{sandbox}/execs/{exec}/signal", {
      params: this.#path,
      body: { signal },
    });
  }

  /** Kills it. */
  kill(): Promise<void> {
    return this.signal("KILL");
  }

  /** Gives its terminal a new size. */
  async resize(size: Schemas["SizeWish"]): Promise<void> {
    await this.#wire.api.POST("/v1/sandboxes/{sandbox}/execs/{exec}/resize", {
      params: this.#path,
      body: size,
    });
  }
}
