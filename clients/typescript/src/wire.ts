/** The connection to a server: what every request passes. */

import createClient, { type Client as Api } from "openapi-fetch";
import { BrokenOff, CofferdamError, brokenOff, errorOf, misread, unfit, unreachable } from "./errors.js";
import { EventReader, type StreamEvent } from "./events.js";
import type { paths } from "./schema.js";

/** Where a server is. */
export interface ClientOptions {
  /** Its address. Default: `http://127.0.0.1:7070`. */
  url?: string;
  /** A key of `cofferdam key create`. */
  key?: string | undefined;
  /** How long a server that went away is waited for, in milliseconds. Default: 10 000. */
  reconnectMs?: number;
  /** What connects, in place of the platform's own; `unixFetch` of `@cofferdam/client/unix`. */
  fetch?: (request: Request) => Promise<Response>;
}

/** A request beside those of the document's types: bodies and answers in bytes. */
export interface Raw {
  query?: Record<string, string | number | boolean | undefined>;
  headers?: Record<string, string>;
  body?: BodyInit | undefined;
  signal?: AbortSignal | undefined;
}

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1000;
/** A stream that says nothing for so long is broken. A server says every 15 s that it is there. */
const SILENCE_MS = 60_000;
/** A stream that ends so often at once, without an event, is given up. */
const MOST_EMPTY_STREAMS = 10;

export class Wire {
  readonly api: Api<paths>;
  readonly #url: string;
  readonly #fetch: (request: Request) => Promise<Response>;
  readonly #headers: Record<string, string>;
  readonly #reconnectMs: number;
  /** A server that never answered is no server that went away. */
  #hasMet = false;

  constructor(options: ClientOptions) {
    this.#url = address(options.url ?? "http://127.0.0.1:7070");
    this.#fetch = options.fetch ?? ((request) => fetch(request));
    this.#headers = authorization(options.key);
    this.#reconnectMs = options.reconnectMs ?? 10_000;
    this.api = createClient<paths>({
      baseUrl: this.#url,
      headers: this.#headers,
      pathSerializer: pathOf,
      bodySerializer: textOf,
      fetch: async (request) => readable(await this.send(request)),
    });
  }

  /** Sends a request, patiently where that does no more. An answer with a problem is thrown. */
  async send(request: Request): Promise<Response> {
    const giveUp = Date.now() + this.#reconnectMs;
    const isRepeatable = mayRepeat(request);
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      try {
        const response = await this.#fetch(isRepeatable ? request.clone() : request);
        this.#hasMet = true;
        if (response.ok || response.status === 304) return told(response);
        throw await problemOf(response);
      } catch (error) {
        if (error instanceof CofferdamError || request.signal.aborted) throw error;
        const isOver = Date.now() + pause > giveUp;
        if (isOver || !this.#hasMet || !isRepeatable) throw unreachable(error);
      }
      await asleep(pause, request.signal);
    }
  }

  /** Sends a request whose body or answer is bytes. */
  raw(method: string, path: string, raw: Raw = {}): Promise<Response> {
    const url = new URL(this.#url + path);
    for (const [name, value] of Object.entries(raw.query ?? {})) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    const init: RequestInit & { duplex: "half" } = { method, duplex: "half" };
    init.headers = { ...this.#headers, ...raw.headers };
    if (raw.body !== undefined) init.body = raw.body;
    if (raw.signal) init.signal = raw.signal;
    return this.send(requestOf(url, init));
  }

  /** A stream of events. An error that it tells is thrown. */
  async *events(path: string, raw: Raw = {}): AsyncGenerator<StreamEvent, void, undefined> {
    const response = await this.raw("GET", path, raw);
    if (!response.body) return;
    const reader = response.body.getReader();
    const events = new EventReader();
    try {
      for (;;) {
        const piece = await within(SILENCE_MS, reader.read(), raw.signal);
        if (piece.done) return;
        for (const event of events.feed(piece.value)) {
          if (event.name === "problem") throw errorOf(parsed(event.data));
          yield event;
        }
      }
    } finally {
      await reader.cancel().catch(() => {});
    }
  }

  /** A stream that is taken up where it broke off, again and again, until nobody asks for more. */
  async *resumed(path: string, raw: Raw): AsyncGenerator<StreamEvent, void, undefined> {
    let last = "";
    for (let empty = 1; empty <= MOST_EMPTY_STREAMS; empty += 1) {
      const begin = Date.now();
      const headers = last ? { ...raw.headers, "last-event-id": last } : { ...raw.headers };
      try {
        for await (const event of this.events(path, { ...raw, headers })) {
          last = event.id || last;
          empty = 0;
          yield event;
        }
      } catch (error) {
        // Connecting was patient; what broke later is worth another try.
        const isBroken = error instanceof BrokenOff || !(error instanceof CofferdamError);
        if (raw.signal?.aborted) throw error;
        if (!isBroken) throw error;
      }
      if (Date.now() - begin > SILENCE_MS / 2) empty = 0;
      await asleep(FIRST_PAUSE_MS * empty, raw.signal);
    }
    throw unreachable(new Error(`${path} ends at once each time`));
  }
}

/** A request, if there can be such a one. */
function requestOf(url: URL, init: RequestInit): Request {
  try {
    return new Request(url, init);
  } catch (cause) {
    throw unfit(`no request can hold the arguments: ${String(cause)}`, "See what types they have.", cause);
  }
}

/** What a request says in JSON, if it can: numbers of other types and what holds itself cannot. */
export function textOf(body: unknown): string {
  try {
    return JSON.stringify(body);
  } catch (cause) {
    throw unfit(`no request can hold the arguments: ${String(cause)}`, "See what types they have.", cause);
  }
}

/** The address of a server, without a slash at its end. */
export function address(url: string): string {
  if (/^https?:\/\/./.test(String(url)) && URL.canParse(url)) return url.replace(/\/$/, "");
  throw unfit(`${String(url)} is no address of a server`, "Write http://HOST:PORT or https://HOST.");
}

/** The header with a key. What no key can be is refused here, for what refuses it later prints it. */
export function authorization(key: string | undefined): Record<string, string> {
  const plain = key?.trim();
  if (!plain) return {};
  if (/^[\x21-\x7e]+$/.test(plain)) return { authorization: `Bearer ${plain}` };
  throw unfit("the key has characters that no key has", "Give it as `cofferdam key create` printed it.");
}

/** What an answer of the document's types has; problems were thrown before. */
export function done<T>(answer: { data?: T; response: Response }): T {
  if (answer.data === undefined) throw errorOf(undefined, answer.response.status);
  return answer.data;
}

/** What an answer with JSON has. */
export async function read<T>(answer: Response): Promise<T> {
  return parsed<T>(await answer.text());
}

/** What a text in JSON has, which is an object wherever a server says something. */
export function parsed<T>(text: string): T {
  let found: T;
  try {
    found = JSON.parse(text) as T;
  } catch (cause) {
    throw misread(String(cause), cause);
  }
  if (typeof found !== "object" || found === null || Array.isArray(found)) throw misread("it is no object");
  return found;
}

/** The same answer, whose JSON was looked at: what the generated part cannot read is an error of this client. */
async function readable(answer: Response): Promise<Response> {
  const { status, statusText, headers } = answer;
  if (status === 204) return answer;
  const text = await answer.text();
  parsed(text);
  return new Response(text, { status, statusText, headers });
}

/** The same answer, whose body says in the words of this client where it breaks off. */
function told(response: Response): Response {
  const reader = response.body?.getReader();
  if (!reader) return response;
  const body = new ReadableStream<Uint8Array>({
    async pull(out) {
      try {
        const piece = await reader.read();
        if (piece.done) out.close();
        else out.enqueue(piece.value);
      } catch (error) {
        out.error(isAbort(error) ? error : brokenOff(error));
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
  const { status, statusText, headers } = response;
  return new Response(body, { status, statusText, headers });
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && ["AbortError", "TimeoutError"].includes(error.name);
}

/** Whether a request does no more when it is sent again. */
function mayRepeat(request: Request): boolean {
  const isEnsured = request.method === "PUT" && new URL(request.url).pathname.split("/").length === 4;
  // Other keys are forgotten with the server that may have gone.
  const isKeyed = request.headers.has("idempotency-key") && new URL(request.url).pathname.endsWith("/execs");
  return ["GET", "HEAD"].includes(request.method) || isEnsured || isKeyed;
}

async function problemOf(response: Response): Promise<CofferdamError> {
  const text = await response.text();
  const requestId = response.headers.get("x-request-id") ?? undefined;
  try {
    return errorOf(JSON.parse(text), response.status, requestId);
  } catch {
    return errorOf(undefined, response.status, requestId);
  }
}

function asleep(ms: number, signal?: AbortSignal | null): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
    if (signal?.aborted) stop();
  });
}

/** The same, or an error where it takes too long. */
async function within<T>(ms: number, work: Promise<T>, signal?: AbortSignal): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing came for ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    signal?.throwIfAborted();
  }
}

/**
 * A part of a URL's path. What every reader of addresses takes for a step up, or for nothing, is refused: the
 * request would go to another route.
 */
export function segment(text: string): string {
  if (["", ".", ".."].includes(text)) {
    const details = { kind: "not_found", hint: "Give a whole name or id." };
    throw new CofferdamError(`there is nothing called ${JSON.stringify(text)}`, details);
  }
  try {
    return encodeURIComponent(text);
  } catch (cause) {
    // Half a character.
    const details = { kind: "usage", hint: "Give a name of whole characters.", cause };
    throw new CofferdamError(`${JSON.stringify(text)} is no name`, details);
  }
}

/** The path of a route of the document, with names in their places. */
function pathOf(route: string, names: Record<string, unknown>): string {
  return route.replace(/\{(\w+)\}/g, (_, name: string) => segment(String(names[name] ?? "")));
}

