/** What goes wrong: kind, message and hint in the words of the server. */

/** The stable names of kinds of failure. A newer server may have others. */
export type ErrorKind =
  | "usage"
  | "config"
  | "denied"
  | "not_found"
  | "conflict"
  | "too_large"
  | "path_escape"
  | "not_a_file"
  | "unsupported"
  | "unenforceable"
  | "setup_failed"
  | "canceled"
  | "unavailable"
  | "timed_out"
  | "protocol"
  | "io"
  | (string & {});

interface Details {
  kind: ErrorKind;
  hint?: string | undefined;
  retryable?: boolean | undefined;
  status?: number | undefined;
  requestId?: string | undefined;
  result?: unknown;
  cause?: unknown;
}

/** A request that failed. */
export class CofferdamError extends Error {
  override readonly name: string = "CofferdamError";
  readonly kind: ErrorKind;
  /** What to do about it. */
  readonly hint: string | undefined;
  /** Whether the same request may succeed later without any change. */
  readonly retryable: boolean;
  /** The status of the answer, where there was one. */
  readonly status: number | undefined;
  /** The number under which the server's log has more. */
  readonly requestId: string | undefined;
  /** What was found or done all the same, for edits, patches and `apply`. */
  readonly result: unknown;

  constructor(message: string, details: Details) {
    super(message, details.cause === undefined ? {} : { cause: details.cause });
    this.kind = details.kind;
    this.hint = details.hint;
    this.retryable = details.retryable ?? false;
    this.status = details.status;
    this.requestId = details.requestId;
    this.result = details.result;
  }
}

/** A command that did not exit with 0. Thrown by `Ran.check` alone. */
export class CommandFailed extends Error {
  override readonly name = "CommandFailed";

  constructor(
    readonly ending: string,
    readonly exitCode: number,
    readonly stderr: Uint8Array,
    /** Why it never ran, where it did not. */
    readonly detail?: string,
  ) {
    const said = detail || new TextDecoder().decode(stderr).trim().split("\n").pop();
    super(`the command ended as ${ending}, code ${exitCode}${said ? `: ${said}` : ""}`);
  }
}

/** The error for a problem document; of an answer that is none, as far as it goes. */
export function errorOf(problem: unknown, status?: number, requestId?: string): CofferdamError {
  const said = (typeof problem === "object" && problem !== null ? problem : {}) as Record<string, unknown>;
  if (typeof said["kind"] !== "string") {
    const isUnavailable = [429, 502, 503, 504].includes(status ?? 0);
    const kind = isUnavailable ? "unavailable" : "protocol";
    const message = `the answer was ${status}, without a reason`;
    return new CofferdamError(message, { kind, retryable: isUnavailable, status, requestId });
  }
  return new CofferdamError(String(said["message"] ?? said["kind"]), {
    kind: said["kind"],
    hint: typeof said["hint"] === "string" ? said["hint"] : undefined,
    retryable: said["retryable"] === true,
    status: typeof said["status"] === "number" ? said["status"] : status,
    requestId,
    result: said["result"],
  });
}

/** An answer that is none of this protocol. */
export function misread(what: string, cause?: unknown): CofferdamError {
  return new CofferdamError(`the answer is not what a server of Cofferdam answers: ${what}`, {
    kind: "protocol",
    hint: "Check the address, and that client and server are of versions that fit.",
    cause,
  });
}

/** Arguments that no request can hold. Nothing was asked. */
export function unfit(message: string, hint: string, cause?: unknown): CofferdamError {
  return new CofferdamError(message, { kind: "usage", hint, cause });
}

/** A server that does not answer. */
export function unreachable(cause: unknown): CofferdamError {
  return new CofferdamError(`the server does not answer: ${codeOf(cause) || String(cause)}`, {
    kind: "unavailable",
    hint: "See that `cofferdam serve` runs there.",
    retryable: true,
    cause,
  });
}

/** An answer that ended before its end: what came of it is not whole. */
export class BrokenOff extends CofferdamError {}

export function brokenOff(cause: unknown): CofferdamError {
  const why = codeOf(cause) || String(cause);
  return new BrokenOff(`the answer broke off, and what came of it is not whole: ${why}`, {
    kind: "unavailable",
    hint: "Drop what came and ask again. If it breaks off again, ask for less or see the server's log.",
    retryable: true,
    cause,
  });
}

/** What the system calls a failed connection, as far as the platform tells. */
export function codeOf(error: unknown): string {
  for (let at: unknown = error; typeof at === "object" && at !== null; at = (at as Error).cause) {
    const code = (at as { code?: unknown }).code;
    if (typeof code === "string") return code;
  }
  return "";
}
