/** The files of a sandbox's workspace. */

import { CofferdamError, unfit } from "./errors.js";
import { type FilePath, type Schemas, bodyOf, contentOf, place, toBase64 } from "./values.js";
import { type Raw, type Wire, done, parsed, read, segment } from "./wire.js";

/** What a file is written from. A stream is sent as it comes. */
export type FileData = string | Uint8Array | ReadableStream<Uint8Array>;

/** How a file is written. */
export interface WriteOptions {
  /** Its permissions, in octal. */
  mode?: string;
  /** Whether directories above it are made. Default: yes. */
  parents?: boolean;
  /** The SHA-256 that it must have now. */
  ifMatch?: string;
  /** Whether nothing may be there. */
  ifAbsent?: boolean;
}

/** What of files is told. */
export interface WatchOptions {
  depth?: number;
  glob?: string;
  max_directories?: number;
  max_pending?: number;
  signal?: AbortSignal;
}

/** The status where a part of a file begins at its end, or behind it. */
const BEGINS_BEHIND = 416;
const BYTES = { "content-type": "application/octet-stream" };

/** Files, safe against what the sandbox put there. Paths are relative to the workspace. */
export class Files {
  readonly #wire: Wire;
  readonly #sandbox: string;

  constructor(wire: Wire, sandbox: string) {
    this.#wire = wire;
    this.#sandbox = sandbox;
  }

  get #params(): { path: { sandbox: string } } {
    return { path: { sandbox: this.#sandbox } };
  }

  #raw(method: string, what: string, raw: Raw): Promise<Response> {
    return this.#wire.raw(method, `/v1/sandboxes/${segment(this.#sandbox)}/files${what}`, raw);
  }

  /** The bytes of a file, or a part of them; none where that begins at its end or behind it. */
  async read(path: FilePath, part: { offset?: number; length?: number } = {}): Promise<Uint8Array> {
    const range = rangeOf(part.offset ?? 0, part.length ?? undefined);
    const raw = { query: { ...place(path), hash: false }, headers: range ? { range } : {} };
    try {
      const answer = await this.#raw("GET", "", raw);
      return new Uint8Array(await answer.arrayBuffer()).subarray(0, part.length ?? undefined);
    } catch (error) {
      if (error instanceof CofferdamError && error.status === BEGINS_BEHIND) return new Uint8Array();
      throw error;
    }
  }

  /** A file as text. */
  async readText(path: FilePath): Promise<string> {
    return new TextDecoder().decode(await this.read(path));
  }

  /** A file as a stream. One that changes meanwhile, or a connection that breaks, is an error. */
  async download(path: FilePath): Promise<ReadableStream<Uint8Array>> {
    return body(await this.#raw("GET", "", { query: { ...place(path), hash: false } }));
  }

  /** Writes a file, whole or not at all. */
  async write(path: FilePath, data: FileData, options: WriteOptions = {}): Promise<Schemas["FileDone"]> {
    const headers: Record<string, string> = { ...BYTES };
    if (options.ifMatch !== undefined) headers["if-match"] = `"${options.ifMatch}"`;
    if (options.ifAbsent) headers["if-none-match"] = "*";
    const content = bodyOf(data);
    if (content instanceof Uint8Array) {
      const digest = await crypto.subtle.digest("SHA-256", content as BufferSource);
      headers["content-digest"] = `sha-256=:${toBase64(new Uint8Array(digest))}:`;
    }
    const query = { ...place(path), mode: options.mode, parents: options.parents };
    const answer = await this.#raw("PUT", "", { query, headers, body: content });
    return read<Schemas["FileDone"]>(answer);
  }

  /** Adds to the end of a file, which is made where it is missing. */
  async append(
    path: FilePath,
    data: string | Uint8Array,
    options: { mode?: string } = {},
  ): Promise<Schemas["FileDone"]> {
    const raw = { query: { ...place(path), ...options }, headers: BYTES, body: bodyOf(data) };
    return read<Schemas["FileDone"]>(await this.#raw("POST", "/append", raw));
  }

  /** Removes a file; with `recursive` a directory and all in it. */
  async remove(path: FilePath, options: { recursive?: boolean } = {}): Promise<void> {
    const query = { ...place(path), ...options };
    await this.#wire.api.DELETE("/v1/sandboxes/{sandbox}/files", { params: { ...this.#params, query } });
  }

  /** What is there. A link is not followed. */
  async stat(path: FilePath): Promise<Schemas["FileEntry"]> {
    const params = { ...this.#params, query: place(path) };
    return done(await this.#wire.api.GET("/v1/sandboxes/{sandbox}/files/stat", { params }));
  }

  /** What is in a directory, page after page. */
  async *list(
    path: FilePath = ".",
    options: { depth?: number } = {},
  ): AsyncGenerator<Schemas["FileEntry"], void, undefined> {
    let cursor: { cursor?: string; cursor_base64?: string } | undefined = {};
    while (cursor) {
      const params = { ...this.#params, query: { ...place(path), ...options, ...cursor } };
      const found = await this.#wire.api.GET("/v1/sandboxes/{sandbox}/files/list", { params });
      const page: Schemas["FileList"] = done(found);
      yield* page.entries;
      if (page.next != null) cursor = { cursor: page.next };
      else if (page.next_base64 != null) cursor = { cursor_base64: page.next_base64 };
      else cursor = undefined;
    }
  }

  /** Makes a directory and those above it; one that is there is fine. */
  async mkdir(path: FilePath): Promise<void> {
    const asked = { params: this.#params, body: place(path) };
    await this.#wire.api.POST("/v1/sandboxes/{sandbox}/files/mkdir", asked);
  }

  /** Gives something another name. */
  async move(from: FilePath, to: FilePath, options: { replace?: boolean } = {}): Promise<void> {
    const fields = { ...place(from, "from"), ...place(to, "to"), ...options };
    await this.#wire.api.POST("/v1/sandboxes/{sandbox}/files/move", { params: this.#params, body: fields });
  }

  /** Copies a file; with `recursive` a directory. */
  async copy(
    from: FilePath,
    to: FilePath,
    options: { recursive?: boolean; replace?: boolean } = {},
  ): Promise<void> {
    const fields = { ...place(from, "from"), ...place(to, "to"), ...options };
    await this.#wire.api.POST("/v1/sandboxes/{sandbox}/files/copy", { params: this.#params, body: fields });
  }

  /** Sets permissions, in octal. */
  async chmod(path: FilePath, mode: string): Promise<void> {
    const fields = { ...place(path), mode };
    await this.#wire.api.POST("/v1/sandboxes/{sandbox}/files/chmod", { params: this.#params, body: fields });
  }

  /** Names that one of the patterns matches. */
  async glob(
    patterns: string | string[],
    options: Omit<Schemas["GlobWish"], "patterns"> = {},
  ): Promise<Schemas["FileEntry"][]> {
    const fields = { ...options, patterns: [patterns].flat() };
    const asked = { params: this.#params, body: fields };
    return done(await this.#wire.api.POST("/v1/sandboxes/{sandbox}/files/glob", asked)).entries;
  }

  /** Lines that one of the regular expressions matches. */
  async grep(
    patterns: string | string[],
    options: Omit<Schemas["GrepWish"], "patterns"> = {},
  ): Promise<Schemas["FileMatches"]> {
    const fields = { ...options, patterns: [patterns].flat() };
    const asked = { params: this.#params, body: fields };
    return done(await this.#wire.api.POST("/v1/sandboxes/{sandbox}/files/grep", asked));
  }

  /** Some lines of a text, each with its number. */
  async lines(path: FilePath, part: { offset?: number; limit?: number } = {}): Promise<Schemas["Window"]> {
    const params = { ...this.#params, query: { ...place(path), ...part } };
    return done(await this.#wire.api.GET("/v1/sandboxes/{sandbox}/files/window", { params })).window;
  }

  /** Replaces texts, all or none. What does not apply is a `conflict` with a `result`. */
  async edit(
    path: FilePath,
    edits: Schemas["EditWish"][],
    options: { dry_run?: boolean } = {},
  ): Promise<Schemas["FileEdit"]> {
    const asked = { params: this.#params, body: { ...place(path), edits, ...options } };
    return done(await this.#wire.api.POST("/v1/sandboxes/{sandbox}/files/edit", asked));
  }

  /** Applies a unified diff, or one of `*** Begin Patch`, all of it or nothing. */
  async patch(
    patch: string | Uint8Array,
    options: { dry_run?: boolean; reverse?: boolean } = {},
  ): Promise<Schemas["FilePatch"]> {
    const raw = { query: options, headers: { "content-type": "text/x-diff" }, body: contentOf(patch) as BodyInit };
    return read<Schemas["FilePatch"]>(await this.#raw("POST", "/patch", raw));
  }

  /**
   * A directory or file as a tar archive. One that cannot be whole, or has more bytes of files than
   * `maxBytes`, is an error after the pieces that came.
   */
  async export(
    path: FilePath = ".",
    options: { maxBytes?: number } = {},
  ): Promise<ReadableStream<Uint8Array>> {
    const query = { ...place(path), max_bytes: options.maxBytes };
    return body(await this.#raw("GET", "/archive", { query }));
  }

  /** Unpacks a tar archive, all of it or nothing. */
  async import(
    path: FilePath,
    archive: Uint8Array | ReadableStream<Uint8Array>,
    options: { replace?: boolean } = {},
  ): Promise<Schemas["FileImported"]> {
    const headers = { "content-type": "application/x-tar" };
    const raw = { query: { ...place(path), ...options }, headers, body: bodyOf(archive) };
    return read<Schemas["FileImported"]>(await this.#raw("PUT", "/archive", raw));
  }

  /**
   * What happens to files, from `ready` on. A watch that breaks off is an error, for nobody knows what
   * happened meanwhile.
   */
  async *watch(
    path: FilePath = ".",
    options: WatchOptions = {},
  ): AsyncGenerator<Schemas["FileEventReport"], void, undefined> {
    const { signal, ...asked } = options;
    const url = `/v1/sandboxes/${segment(this.#sandbox)}/files/watch`;
    for await (const event of this.#wire.events(url, { query: { ...place(path), ...asked }, signal })) {
      yield parsed<Schemas["FileEventReport"]>(event.data);
    }
  }
}

/**
 * The field that asks for a part of a file; nothing for all of it. One that HTTP has not would be ignored, and
 * all would come.
 */
function rangeOf(offset: number, length: number | undefined): string | undefined {
  for (const [name, value] of Object.entries({ offset, length: length ?? 0 })) {
    if (Number.isSafeInteger(value) && value >= 0) continue;
    const hint = "Give 0 or more; `stat` has the size of a file, to count from its end.";
    throw unfit(`${name} is ${String(value)}, and no number of bytes`, hint);
  }
  if (length === undefined) return offset > 0 ? `bytes=${offset}-` : undefined;
  // There is no range without a byte. With one it is seen whether the file is there.
  return `bytes=${offset}-${offset + Math.max(length, 1) - 1}`;
}

function body(answer: Response): ReadableStream<Uint8Array> {
  return answer.body ?? new ReadableStream({ start: (controller) => controller.close() });
}
