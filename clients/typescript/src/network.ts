/** What a sandbox may reach, and what reaches it. */

import type { Schemas } from "./values.js";
import { type Wire, done } from "./wire.js";

/** The rules of a sandbox, what waits to be allowed, and what became of its connections. */
export class Network {
  readonly #wire: Wire;
  readonly #params: { path: { sandbox: string } };

  constructor(wire: Wire, sandbox: string) {
    this.#wire = wire;
    this.#params = { path: { sandbox } };
  }

  /** The rules in force. */
  async show(): Promise<Schemas["NetworkReport"]> {
    return done(await this.#wire.api.GET("/v1/sandboxes/{sandbox}/network", { params: this.#params }));
  }

  /** Makes these all the rules there are, from the next connection on. None close it. */
  async set(rules: Schemas["NetworkWish"] = {}): Promise<Schemas["NetworkReport"]> {
    const asked = { params: this.#params, body: rules };
    return done(await this.#wire.api.PUT("/v1/sandboxes/{sandbox}/network", asked));
  }

  /** Allows more, as in `crates.io:443`, within what the operator of the server allows. */
  async allow(...rules: string[]): Promise<Schemas["NetworkReport"]> {
    const asked = { params: this.#params, body: { rules } };
    return done(await this.#wire.api.POST("/v1/sandboxes/{sandbox}/network/allow", asked));
  }

  /** Denies what is allowed otherwise. */
  async deny(...rules: string[]): Promise<Schemas["NetworkReport"]> {
    const asked = { params: this.#params, body: { rules } };
    return done(await this.#wire.api.POST("/v1/sandboxes/{sandbox}/network/deny", asked));
  }

  /** What waits to be allowed, and what did so lately. */
  async approvals(): Promise<Schemas["PermissionReport"][]> {
    const found = await this.#wire.api.GET("/v1/sandboxes/{sandbox}/approvals", { params: this.#params });
    return done(found).permissions;
  }

  /** Answers something that waits. A key has to have the scope `approve` for it. */
  async answer(
    approval: string,
    answer: Exclude<Schemas["AnswerName"], "profile">,
  ): Promise<Schemas["PermissionReport"]> {
    const params = { path: { ...this.#params.path, approval } };
    const asked = { params, body: { answer } };
    return done(await this.#wire.api.POST("/v1/sandboxes/{sandbox}/approvals/{approval}", asked));
  }

  /** What became of its connections so far, as far as that is kept, questions for names among them. */
  async *connections(): AsyncGenerator<Schemas["ConnectionReport"], void, undefined> {
    for (let after = 0; ; ) {
      const params = { ...this.#params, query: { after } };
      const page = done(await this.#wire.api.GET("/v1/sandboxes/{sandbox}/audit", { params }));
      yield* page.connections;
      if (page.next === after) return;
      after = page.next;
    }
  }
}

/** Ports inside a sandbox that have an address. */
export class Ports {
  readonly #wire: Wire;
  readonly #params: { path: { sandbox: string } };

  constructor(wire: Wire, sandbox: string) {
    this.#wire = wire;
    this.#params = { path: { sandbox } };
  }

  /** All of them. */
  async list(): Promise<Schemas["PortReport"][]> {
    return done(await this.#wire.api.GET("/v1/sandboxes/{sandbox}/ports", { params: this.#params })).ports;
  }

  /** Gives a port an address, web sockets included. Whoever knows its `url` needs no key. */
  async open(port: number): Promise<Schemas["PortReport"]> {
    const asked = { params: this.#params, body: { port } };
    return done(await this.#wire.api.POST("/v1/sandboxes/{sandbox}/ports", asked));
  }

  /** Takes the address from a port. Connections that stand go on. */
  async close(port: number): Promise<void> {
    const params = { path: { ...this.#params.path, port } };
    await this.#wire.api.DELETE("/v1/sandboxes/{sandbox}/ports/{port}", { params });
  }
}
