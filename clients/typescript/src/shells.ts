/** Shells, which keep their state from command to command. */

import type { Until } from "./execs.js";
import { type Schemas, asBytes, joined } from "./values.js";
import { type Wire, done } from "./wire.js";

const LONGEST_WAIT_MS = 60_000;

/** A shell of a sandbox. */
export class Shell {
  readonly #wire: Wire;
  readonly #sandbox: string;

  constructor(
    wire: Wire,
    sandbox: string,
    readonly report: Schemas["ShellReport"],
  ) {
    this.#wire = wire;
    this.#sandbox = sandbox;
  }

  get name(): string {
    return this.report.name;
  }

  get #params(): { path: { sandbox: string; shell: string } } {
    return { path: { sandbox: this.#sandbox, shell: this.name } };
  }

  /**
   * Runs a command in it to its end. The exit code is missing where the shell died with it. Where `signal`
   * aborts, the command is interrupted, and the shell goes on.
   */
  async run(text: string, until: Until = {}): Promise<{ output: Uint8Array; exitCode: number | undefined }> {
    until.signal?.throwIfAborted();
    try {
      return await this.#run(text, until.signal ? { signal: until.signal } : {});
    } catch (error) {
      if (until.signal?.aborted) await this.interrupt().catch(() => {});
      throw error;
    }
  }

  async #run(text: string, until: Until): Promise<{ output: Uint8Array; exitCode: number | undefined }> {
    const params = this.#params;
    const asked = this.#wire.api.POST("/v1/sandboxes/{sandbox}/shells/{shell}/run", {
      params,
      body: { text },
      ...until,
    });
    let ran = done(await asked);
    const parts = [asBytes(ran.text, ran.base64)];
    let offset = ran.offset + (parts[0]?.length ?? 0);
    while (ran.is_cut || (ran.exit_code == null && ran.died == null)) {
      const checked = this.#wire.api.POST("/v1/sandboxes/{sandbox}/shells/{shell}/check", {
        params,
        body: { seq: ran.seq, offset, wait_ms: LONGEST_WAIT_MS },
        ...until,
      });
      ran = done(await checked);
      const part = asBytes(ran.text, ran.base64);
      offset += part.length;
      parts.push(part);
    }
    return { output: joined(parts), exitCode: ran.exit_code ?? undefined };
  }

  /** Ctrl-C for what runs in it. */
  async interrupt(): Promise<void> {
    await this.#wire.api.POST("/v1/sandboxes/{sandbox}/shells/{shell}/interrupt", { params: this.#params });
  }

  /** Kills it. */
  async terminate(): Promise<void> {
    await this.#wire.api.DELETE("/v1/sandboxes/{sandbox}/shells/{shell}", { params: this.#params });
  }
}
