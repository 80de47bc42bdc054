/** What goes into requests and comes out of answers, without any connection. */

import { CommandFailed, unfit } from "./errors.js";
import type { components } from "./schema.js";

/** The objects of requests and answers, by their names in the server's document. */
export type Schemas = components["schemas"];

/** A path in a workspace. Bytes name a file whose name is not UTF-8. */
export type FilePath = string | Uint8Array;
/** A command: words, or a line for `/bin/sh -c`. */
export type Command = readonly string[] | string;
export type StreamName = "stdout" | "stderr";

/** How a command runs. */
export type ExecOptions = Omit<Schemas["ExecWish"], "argv" | "shell">;
/** What a sandbox is made of. */
export type SandboxOptions = Omit<Schemas["SandboxWish"], "name">;
/** How a command in a sandbox of its own runs. */
export type RunOptions = Schemas["SpecWish"] &
  Pick<Schemas["RunWish"], "preflight" | "capture_bytes" | "on_failure"> &
  Omit<Schemas["ExecWish"], "argv" | "shell" | "env" | "detached" | "keep_awake" | "receipt" | "stdin">;

/** A part of what a command wrote. */
export interface Output {
  stream: StreamName;
  /** The place of its first byte in the stream. A gap before it is output that is not kept any more. */
  offset: number;
  data: Uint8Array;
  /** The part as text; a character that is cut at its end, or no text, is replaced. */
  text: string;
}

/** What makes the same request again do nothing: a text of at most 255 bytes. */
export interface Once {
  key?: string | undefined;
}

/** That as a header of a request. */
export function onceOf(key: string | undefined): { header?: { "idempotency-key": string } } {
  if (key === undefined) return {};
  try {
    new Headers({ "idempotency-key": key });
  } catch (cause) {
    throw unfit("the key is none that a request can hold", "Give letters and digits, as of a UUID.", cause);
  }
  return { header: { "idempotency-key": key } };
}

/** The fields of a command in a sandbox of its own. */
export function runOf(command: Command, options: RunOptions): Schemas["RunWish"] {
  const { preflight, capture_bytes, on_failure, ...others } = options;
  const { profile, workspace, copy_on_write, image, pull, env, limits, ...rest } = others;
  const { secrets, egress, deny_egress, ...exec } = rest;
  const place = { profile, workspace, copy_on_write, image, pull, env, limits };
  return {
    sandbox: given({ ...place, secrets, egress, deny_egress }),
    exec: { ...exec, ...commandOf(command) },
    ...given({ preflight, capture_bytes, on_failure }),
  };
}

/** The fields that have a value. */
function given<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const kept = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(kept) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

/** The fields of a command. */
export function commandOf(command: Command): Pick<Schemas["ExecWish"], "argv" | "shell"> {
  if (typeof command === "string") return { shell: command };
  if (Array.isArray(command) && command.every((word) => typeof word === "string")) return { argv: [...command] };
  throw unfit(`${String(command)} is no command`, "Give a list of words, or a line of shell.");
}

/** A path as parameters or fields of a request. */
export function place(path: FilePath): { path?: string; path_base64?: string };
export function place(path: FilePath, name: string): Record<string, string>;
export function place(path: FilePath, name = "path"): Record<string, string> {
  if (typeof path === "string") return { [name]: path };
  if (!ArrayBuffer.isView(path)) {
    throw unfit(`${name} is ${String(path)}, and no path`, "Give a text, or bytes.");
  }
  try {
    return { [name]: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(path) };
  } catch {
    return { [`${name}_base64`]: toBase64(path) };
  }
}

/** Several paths as fields of a request. */
export function places(paths: readonly FilePath[]): { paths: string[]; paths_base64: string[] } {
  const each = paths.map((path) => place(path));
  return {
    paths: each.flatMap((one) => one.path ?? []),
    paths_base64: each.flatMap((one) => one.path_base64 ?? []),
  };
}

/** A text or bytes as bytes. Anything else is refused, for nothing would be a body, too. */
export function contentOf(data: unknown): Uint8Array {
  if (typeof data === "string") return new TextEncoder().encode(data);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  // It may be a secret: its type alone is shown.
  const what = data === null ? "null" : typeof data;
  throw unfit(`a value of the type ${what} is no content`, 'Give bytes, or a text; "" for nothing.');
}

/** The same, or what gives bytes as they come. */
export function bodyOf(data: unknown): BodyInit {
  const isObject = typeof data === "object" && data !== null;
  const comes = isObject && ("getReader" in data || Symbol.asyncIterator in data || data instanceof Blob);
  return (comes ? data : contentOf(data)) as BodyInit;
}

export function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

/** Bytes that came as text, or in base64 where they are none. */
export function asBytes(text?: string | null, base64?: string | null): Uint8Array {
  if (typeof text === "string") return new TextEncoder().encode(text);
  return Uint8Array.from(atob(base64 ?? ""), (letter) => letter.charCodeAt(0));
}

export function joined(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** The part of an answer. */
export function outputOf(part: Schemas["LogPart"]): Output {
  const data = asBytes(part.text, part.base64);
  const text = new TextDecoder().decode(data);
  return { stream: part.stream as StreamName, offset: part.offset, data, text };
}

/** A command that has ended, with what it wrote. */
export class Ran {
  constructor(
    readonly exitCode: number,
    /** How it ended: `exited`, `signaled`, `timed_out`, `out_of_memory` … */
    readonly ending: Schemas["EndingKind"],
    readonly stdout: Uint8Array,
    readonly stderr: Uint8Array,
    /** How many bytes of each stream are not in here. */
    readonly omitted: { stdout: number; stderr: number },
    /** All that the server says of it. */
    readonly report: Schemas["ExecReport"] | Schemas["RunReport"],
  ) {}

  /** Standard output as text. */
  get text(): string {
    return new TextDecoder().decode(this.stdout);
  }

  /** The same, where it exited with 0; otherwise it throws `CommandFailed`. */
  check(): this {
    if (this.exitCode === 0 && this.ending === "exited") return this;
    const told = "detail" in this.report ? this.report : this.report.ending;
    const detail = typeof told === "object" && told ? told.detail : undefined;
    throw new CommandFailed(this.ending, this.exitCode, this.stderr, detail ?? undefined);
  }

  /** What came of a command in a sandbox of its own. */
  static of(report: Schemas["RunReport"]): Ran {
    const stdout = asBytes(report.stdout, report.stdout_base64);
    const stderr = asBytes(report.stderr, report.stderr_base64);
    return new Ran(report.exit_code, report.ending.kind, stdout, stderr, report.omitted, report);
  }
}

/** Gathers output up to a limit a stream, and counts the rest. */
export class Gathering {
  #kept: Record<StreamName, Uint8Array[]> = { stdout: [], stderr: [] };
  #room: Record<StreamName, number>;

  constructor(most: number) {
    this.#room = { stdout: most, stderr: most };
  }

  take({ stream, data }: Output): void {
    const part = data.subarray(0, this.#room[stream]);
    this.#room[stream] -= part.length;
    this.#kept[stream].push(part);
  }

  ran(report: Schemas["ExecReport"]): Ran {
    const [stdout, stderr] = [joined(this.#kept.stdout), joined(this.#kept.stderr)];
    const omitted = {
      stdout: report.stdout.written - stdout.length,
      stderr: report.stderr.written - stderr.length,
    };
    return new Ran(report.exit_code ?? -1, report.ending ?? "lost", stdout, stderr, omitted, report);
  }
}
