/** A server, and the sandboxes of one caller on it. */

import type { Client as Api } from "openapi-fetch";
import type { Until } from "./execs.js";
import { Sandbox } from "./sandbox.js";
import type { paths } from "./schema.js";
import {
  type Command,
  type Once,
  Ran,
  type RunOptions,
  type SandboxOptions,
  type Schemas,
  contentOf,
  onceOf,
  runOf,
} from "./values.js";
import { type ClientOptions, Wire, done, parsed, read, segment } from "./wire.js";

/**
 * A server of `cofferdam serve`. One that goes away and comes back is waited for, and what can be repeated
 * without doing more is repeated: questions, `ensure`, and commands, each of which has a key of its own.
 */
export class Client {
  readonly #wire: Wire;

  constructor(options: ClientOptions = {}) {
    this.#wire = new Wire(options);
  }

  /** Every operation of the server's document, for what has no method here. */
  get api(): Api<paths> {
    return this.#wire.api;
  }

  /**
   * Makes a sandbox, which stays until it is deleted. A name that is taken is a `conflict`. The same `key`
   * again makes nothing and gives the one that was made, as long as the server lives.
   */
  async create(options: Schemas["SandboxWish"] & Once = {}): Promise<Sandbox> {
    const { key, ...wish } = options;
    const made = await this.api.POST("/v1/sandboxes", { params: onceOf(key), body: wish });
    return new Sandbox(this.#wire, done(made));
  }

  /** The sandbox of a name, ready; made if there is none. */
  async ensure(name: string, options: SandboxOptions = {}): Promise<Sandbox> {
    const params = { path: { sandbox: name } };
    const ensured = await this.api.PUT("/v1/sandboxes/{sandbox}", { params, body: options });
    return new Sandbox(this.#wire, done(ensured));
  }

  /** The sandbox of a name or an id. */
  async get(sandbox: string): Promise<Sandbox> {
    const params = { path: { sandbox } };
    return new Sandbox(this.#wire, done(await this.api.GET("/v1/sandboxes/{sandbox}", { params })));
  }

  /** Every sandbox of this caller that has all these labels, page after page. */
  async *sandboxes(labels: Record<string, string> = {}): AsyncGenerator<Sandbox, void, undefined> {
    // Signs that mean something there have a backslash before them.
    const sign = (part: string) => part.replace(/[\\,=]/g, "\\$&");
    const label = Object.entries(labels).map((pair) => pair.map(sign).join("=")).join(",");
    const filter = label ? { label } : {};
    let cursor: string | undefined;
    do {
      const query: { label?: string; cursor?: string } = cursor ? { ...filter, cursor } : filter;
      const page = done(await this.api.GET("/v1/sandboxes", { params: { query } }));
      for (const report of page.sessions) yield new Sandbox(this.#wire, report);
      cursor = page.next_cursor ?? undefined;
    } while (cursor);
  }

  /**
   * A sandbox for a block: `await using box = await client.sandbox()`. At the block's end it is deleted if
   * it was made for it, unless `keep`.
   */
  async sandbox(options: Schemas["SandboxWish"] & { keep?: boolean } = {}): Promise<Sandbox> {
    const { keep, name, ...wish } = options;
    if (name == null) {
      const made = done(await this.api.POST("/v1/sandboxes", { body: wish }));
      return new Sandbox(this.#wire, made, keep ? "own" : "block");
    }
    const params = { path: { sandbox: name } };
    const ensured = await this.api.PUT("/v1/sandboxes/{sandbox}", { params, body: wish });
    const isMade = ensured.response.status === 201;
    return new Sandbox(this.#wire, done(ensured), isMade && !keep ? "block" : "own");
  }

  /**
   * Runs a command in a sandbox of its own, which is gone at the end, and when `signal` aborts. The same
   * `key` again runs nothing and gives what came of it, as long as the server lives.
   */
  async run(command: Command, options: RunOptions & Once & Until = {}): Promise<Ran> {
    const { key, signal, ...wish } = options;
    const asked = { params: onceOf(key), body: runOf(command, wish), ...(signal ? { signal } : {}) };
    return Ran.of(done(await this.api.POST("/v1/run", asked)));
  }

  /**
   * What happened since the event of a number, and then what happens, without an end; with
   * `follow: false` up to now. Keep the `seq` of the last one to go on there another day.
   */
  async *events(
    options: { after?: number; sandbox?: string; follow?: boolean } & Until = {},
  ): AsyncGenerator<Schemas["EventReport"], void, undefined> {
    const { follow = true, signal, ...asked } = options;
    if (follow) {
      for await (const event of this.#wire.resumed("/v1/events/stream", { query: asked, signal })) {
        yield parsed<Schemas["EventReport"]>(event.data);
      }
      return;
    }
    for (;;) {
      const { events } = done(await this.api.GET("/v1/events", { params: { query: asked } }));
      const last = events.at(-1);
      if (!last) return;
      yield* events;
      asked.after = last.seq;
    }
  }

  /** What callers changed, after the entry of a number. */
  async audit(after = 0): Promise<Schemas["AuditReport"][]> {
    return done(await this.api.GET("/v1/audit", { params: { query: { after } } })).entries;
  }

  /** The secrets of this caller, by name. Nobody is told a value. */
  async secrets(): Promise<Schemas["SecretReport"][]> {
    return done(await this.api.GET("/v1/secrets")).secrets;
  }

  /** Adds a secret, or gives one that is there another value. */
  async putSecret(name: string, value: string | Uint8Array): Promise<Schemas["SecretReport"]> {
    const headers = { "content-type": "application/octet-stream" };
    const raw = { headers, body: contentOf(value) as BodyInit };
    const put = await this.#wire.raw("PUT", `/v1/secrets/${segment(name)}`, raw);
    return read<Schemas["SecretReport"]>(put);
  }

  /** Removes a secret. Commands that have it keep it until they end. */
  async removeSecret(name: string): Promise<void> {
    await this.api.DELETE("/v1/secrets/{secret}", { params: { path: { secret: name } } });
  }

  /** The tools of a pack, with a text for a system prompt. */
  async tools(pack: string): Promise<Schemas["ToolList"]> {
    return done(await this.api.GET("/v1/tools/{pack}", { params: { path: { pack } } }));
  }

  /** Calls a tool. One that fails is an outcome with `is_error`, and throws nothing. */
  async callTool(
    pack: string,
    tool: string,
    args: Record<string, unknown>,
  ): Promise<Schemas["ToolOutcome"]> {
    const asked = { params: { path: { pack, tool } }, body: args };
    return done(await this.api.POST("/v1/tools/{pack}/{tool}", asked));
  }

  /** Whether the server takes requests now. */
  async ready(): Promise<boolean> {
    return this.api.GET("/readyz").then(
      () => true,
      () => false,
    );
  }
}
