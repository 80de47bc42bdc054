/** Terminals: a command that somebody sits before, over a WebSocket. For Node. */

import { type IncomingMessage, request as overHttp } from "node:http";
import { request as overTls } from "node:https";
import type { Duplex } from "node:stream";
import { CofferdamError, errorOf, unfit, unreachable } from "./errors.js";
import type { Exec } from "./execs.js";
import { BINARY, CLOSE, FrameReader, PING, PONG, TEXT, answerTo, frame, freshKey } from "./frames.js";
import { type Schemas, contentOf } from "./values.js";
import { address, authorization, parsed, segment, textOf } from "./wire.js";

/** A connection that breaks so often at once, without any output, is given up. */
const MOST_EMPTY = 10;
const PAUSE_MS = 200;
/** What stands before output: the stream, and the place of its first byte. */
const HEAD_BYTES = 9;
/** A server says every 15 s that it is there. */
const SILENCE_MS = 60_000;

/** Where a server is, as for a client; `fetch` plays no part in it. */
export interface TerminalOptions {
  /** Where the server listens. */
  url?: string;
  /** The key. */
  key?: string;
  /** The file of the server's Unix socket, in place of its address. */
  socketPath?: string;
  /** How long a server that went away is waited for. */
  reconnectMs?: number;
  /** The place of the first byte that is told: the `offset` of an earlier terminal. */
  offset?: number;
}

/**
 * The terminal of a command that was started with `terminal` and `stdin`. The command goes on when this is
 * closed, and another one can be opened.
 *
 * Iterating over it gives what the command writes, from `offset` on, to its end. Where the connection breaks
 * it is made anew, from the place where it was: nothing is missed and nothing is told twice, but for what
 * is not kept any more. Then `exec.report` has the end.
 */
export class Terminal {
  readonly #options: TerminalOptions;
  readonly #url: string;
  readonly #headers: Record<string, string>;
  #socket: Duplex | undefined;
  /** The place of the next byte: whoever comes back another day begins there. */
  offset: number;

  constructor(
    sandbox: string,
    readonly exec: Exec,
    options: TerminalOptions = {},
  ) {
    const { key, offset = 0, socketPath, url = "http://127.0.0.1:7070" } = options;
    if (!Number.isSafeInteger(offset) || offset < 0) {
      throw unfit(`offset is ${String(offset)}, and no number of bytes`, "Give the `offset` of an earlier terminal.");
    }
    if (socketPath !== undefined && (typeof socketPath !== "string" || !socketPath || socketPath.includes("\0"))) {
      throw unfit("socketPath is no path", "Give the path of the server's socket, or leave it out.");
    }
    this.#options = options;
    this.#url = `${address(url)}/v1/sandboxes/${segment(sandbox)}/execs/${segment(exec.id)}/attach`;
    this.#headers = authorization(key);
    this.offset = offset;
  }

  /** Connects. Iterating and sending do it too. */
  async open(): Promise<void> {
    this.close();
    const giveUp = Date.now() + (this.#options.reconnectMs ?? 10_000);
    for (;;) {
      try {
        this.#socket = await this.#connected();
        return;
      } catch (error) {
        if (error instanceof CofferdamError) throw error;
        if (Date.now() + PAUSE_MS > giveUp) throw unreachable(error);
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  /** Leaves the command, which goes on. */
  close(): void {
    this.#socket?.destroy();
    this.#socket = undefined;
  }

  /** Types something. What was on its way when a connection breaks may be lost. */
  async send(data: string | Uint8Array): Promise<void> {
    await this.#say(BINARY, contentOf(data));
  }

  /** Gives it a new size. */
  resize(size: Schemas["SizeWish"]): Promise<void> {
    return this.#ask({ type: "resize", ...size });
  }

  /** Sends the command a signal, by its name or its number. */
  signal(signal: string | number): Promise<void> {
    return this.#ask({ type: "signal", signal });
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    for (let empty = 0; empty <= MOST_EMPTY; empty += 1) {
      if (!this.#socket) await this.open();
      const socket = this.#socket as Duplex;
      const reader = new FrameReader();
      try {
        for await (const data of socket) {
          for (const [kind, message] of reader.feed(data as Buffer)) {
            if (kind === PING) await this.#pong(message);
            if (kind === CLOSE) throw new Error("the server hung up");
            if (kind === TEXT && this.#isOver(message)) return;
            if (kind !== BINARY) continue;
            empty = 0;
            this.offset = Number(message.readBigUInt64BE(1)) + message.length - HEAD_BYTES;
            yield message.subarray(HEAD_BYTES);
            // Who connected anew meanwhile is told the rest there.
            if (this.#socket !== socket) throw new Error("this connection is left");
          }
        }
      } catch (error) {
        if (error instanceof CofferdamError) throw error;
      } finally {
        socket.destroy();
        // Somebody may have connected anew meanwhile.
        if (this.#socket === socket) this.close();
      }
    }
    throw broken(new Error("it breaks at once each time"));
  }

  #isOver(message: Buffer): boolean {
    const told = parsed<Schemas["Told"]>(message.toString());
    if (told.type === "problem") throw errorOf(told.problem);
    if (told.type === "dropped") this.offset = told.to;
    if (told.type === "attached" || told.type === "exited") this.exec.report = told.exec;
    return told.type === "exited";
  }

  async #ask(asked: Schemas["Asked"]): Promise<void> {
    await this.#say(TEXT, new TextEncoder().encode(textOf(asked)));
  }

  async #say(kind: number, data: Uint8Array): Promise<void> {
    if (!this.#socket) await this.open();
    const socket = this.#socket as Duplex;
    await new Promise<void>((resolve, reject) => {
      socket.write(frame(kind, data), (error) => (error ? reject(broken(error)) : resolve()));
    }).catch((error: unknown) => {
      // The next one connects anew.
      if (this.#socket === socket) this.close();
      throw error;
    });
  }

  async #pong(message: Uint8Array): Promise<void> {
    try {
      await this.#say(PONG, message);
    } catch (cause) {
      // Iterating connects anew, or says what is wrong.
      throw new Error("nobody hears that this is there", { cause });
    }
  }

  #connected(): Promise<Duplex> {
    const { socketPath } = this.#options;
    const secret = freshKey();
    const at = new URL(this.#url);
    at.searchParams.set("from", String(this.offset));
    const headers = {
      ...this.#headers,
      ...(socketPath ? { host: "localhost" } : {}),
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": secret,
    };
    const asking = at.protocol === "https:" ? overTls : overHttp;
    return new Promise((resolve, reject) => {
      const asked = asking(at, { headers, ...(socketPath ? { socketPath } : {}) });
      asked.on("error", reject);
      asked.on("response", (answer) => void refused(answer).then(reject, reject));
      asked.on("upgrade", (answer, socket, head) => {
        socket.setTimeout(SILENCE_MS, () => socket.destroy(new Error("nothing came for long")));
        // Who reads it is told; who only writes must not be ended by it.
        socket.on("error", () => {});
        if (answer.headers["sec-websocket-accept"] !== answerTo(secret)) {
          socket.destroy();
          reject(new CofferdamError("the server does not talk over a WebSocket", { kind: "protocol" }));
          return;
        }
        if (head.length > 0) socket.unshift(head);
        resolve(socket);
      });
      asked.end();
    });
  }
}

async function refused(answer: IncomingMessage): Promise<CofferdamError> {
  const pieces: Buffer[] = [];
  for await (const piece of answer) pieces.push(piece as Buffer);
  try {
    return errorOf(JSON.parse(Buffer.concat(pieces).toString()), answer.statusCode);
  } catch {
    return errorOf(undefined, answer.statusCode);
  }
}

function broken(cause: Error): CofferdamError {
  return new CofferdamError(`the connection to the command broke: ${cause.message}`, {
    kind: "unavailable",
    hint: "Open its terminal again from the offset where it was.",
    retryable: true,
    cause,
  });
}
