/** The snapshots of a sandbox. */

import { type Once, type Schemas, contentOf, onceOf } from "./values.js";
import { type Wire, done, read, segment } from "./wire.js";

/** Points of a copy-on-write sandbox that stay, by number or label. */
export class Snapshots {
  readonly #wire: Wire;
  readonly #sandbox: string;

  constructor(wire: Wire, sandbox: string) {
    this.#wire = wire;
    this.#sandbox = sandbox;
  }

  #path(snapshot: number | string): { path: { sandbox: string; snapshot: string } } {
    return { path: { sandbox: this.#sandbox, snapshot: String(snapshot) } };
  }

  /** All of them. */
  async list(): Promise<Schemas["SnapshotReport"][]> {
    const params = { path: { sandbox: this.#sandbox } };
    return done(await this.#wire.api.GET("/v1/sandboxes/{sandbox}/snapshots", { params })).snapshots;
  }

  /** Takes one. The same `key` again takes none and gives that, as long as the server lives. */
  async create(label?: string, options: Once = {}): Promise<Schemas["SnapshotReport"]> {
    const made = this.#wire.api.POST("/v1/sandboxes/{sandbox}/snapshots", {
      params: { path: { sandbox: this.#sandbox }, ...onceOf(options.key) },
      body: label === undefined ? {} : { label },
    });
    return done(await made);
  }

  /** Goes back to one. Processes end. */
  async restore(snapshot: number | string): Promise<Schemas["UndoReport"]> {
    const params = this.#path(snapshot);
    const asked = this.#wire.api.POST("/v1/sandboxes/{sandbox}/snapshots/{snapshot}/restore", { params });
    return done(await asked);
  }

  /** Removes one. */
  async remove(snapshot: number | string): Promise<void> {
    const params = this.#path(snapshot);
    await this.#wire.api.DELETE("/v1/sandboxes/{sandbox}/snapshots/{snapshot}", { params });
  }

  /** One as a file for another sandbox. */
  async export(snapshot: number | string): Promise<Uint8Array> {
    const base = `/v1/sandboxes/${segment(this.#sandbox)}/snapshots`;
    const answer = await this.#wire.raw("GET", `${base}/${segment(String(snapshot))}/export`);
    return new Uint8Array(await answer.arrayBuffer());
  }

  /** Takes in what `export` gave. All of it is looked at before it is a snapshot. */
  async import(data: Uint8Array, label?: string): Promise<Schemas["SnapshotImported"]> {
    const url = `/v1/sandboxes/${segment(this.#sandbox)}/snapshots/import`;
    const headers = { "content-type": "application/octet-stream" };
    const body = contentOf(data) as BodyInit;
    const answer = await this.#wire.raw("POST", url, { query: { label }, headers, body });
    return read<Schemas["SnapshotImported"]>(answer);
  }
}
