/** Messages of a WebSocket as bytes, the client's side of RFC 6455. Connections are elsewhere. */

import { createHash, randomBytes } from "node:crypto";

export const TEXT = 1;
export const BINARY = 2;
export const CLOSE = 8;
export const PING = 9;
export const PONG = 10;
const CONTINUED = 0;
/** The longest message that is taken in. */
export const MAX_MESSAGE_BYTES = 4 << 20;

/** A key for the request that asks for a WebSocket. */
export function freshKey(): string {
  return randomBytes(16).toString("base64");
}

/** What a server answers to a key. */
export function answerTo(key: string): string {
  return createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
}

/** A whole message. */
export function frame(kind: number, data: Uint8Array): Uint8Array {
  const length = data.length;
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head[0] = 0x80 | kind;
  head[1] = 0x80 | (length < 126 ? length : length < 65_536 ? 126 : 127);
  if (head.length === 4) head.writeUInt16BE(length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2);
  const mask = randomBytes(4);
  const masked = data.map((byte, at) => byte ^ (mask[at % 4] ?? 0));
  return Buffer.concat([head, mask, masked]);
}

/** Makes messages of bytes, however those are cut. */
export class FrameReader {
  #rest = Buffer.alloc(0);
  #kind = CONTINUED;
  #begun: Buffer[] = [];

  /** The messages that are whole with this, each with its kind. */
  *feed(data: Uint8Array): Generator<[number, Buffer], void, undefined> {
    this.#rest = Buffer.concat([this.#rest, data]);
    for (let found = this.#next(); found; found = this.#next()) {
      const { isLast, kind, piece } = found;
      if (kind >= CLOSE) {
        yield [kind, piece];
        continue;
      }
      if ((kind === CONTINUED) === (this.#kind === CONTINUED)) throw new Error("a message begins within another");
      this.#kind = this.#kind || kind;
      this.#begun.push(piece);
      const bytes = this.#begun.reduce((sum, part) => sum + part.length, 0);
      if (bytes > MAX_MESSAGE_BYTES) throw new Error(`a message has more than ${MAX_MESSAGE_BYTES} bytes`);
      if (!isLast) continue;
      const whole: [number, Buffer] = [this.#kind, Buffer.concat(this.#begun)];
      this.#kind = CONTINUED;
      this.#begun = [];
      yield whole;
    }
  }

  #next(): { isLast: boolean; kind: number; piece: Buffer } | undefined {
    const rest = this.#rest;
    const [first, second] = [rest[0], rest[1]];
    if (first === undefined || second === undefined) return undefined;
    if (first & 0x70 || second & 0x80) throw new Error("a frame is masked, or of a form that nobody asked for");
    const head = second < 126 ? 2 : second === 126 ? 4 : 10;
    if (rest.length < head) return undefined;
    const length =
      head === 2 ? second : head === 4 ? rest.readUInt16BE(2) : Number(rest.readBigUInt64BE(2));
    if (length > MAX_MESSAGE_BYTES) throw new Error(`a frame has more than ${MAX_MESSAGE_BYTES} bytes`);
    if (rest.length < head + length) return undefined;
    this.#rest = rest.subarray(head + length);
    return { isLast: (first & 0x80) !== 0, kind: first & 0x0f, piece: rest.subarray(head, head + length) };
  }
}
