/** Server-sent events, read from bytes. */

/** One event of a stream. */
export interface StreamEvent {
  name: string;
  id: string;
  data: string;
}

/** Puts events together from pieces of a stream, however it is cut. */
export class EventReader {
  #rest = "";
  #decoder = new TextDecoder();
  #name = "message";
  #id = "";
  #data: string[] = [];

  /** The events that this piece completes. */
  feed(piece: Uint8Array): StreamEvent[] {
    const lines = (this.#rest + this.#decoder.decode(piece, { stream: true })).split("\n");
    this.#rest = lines.pop() ?? "";
    const events: StreamEvent[] = [];
    for (const line of lines) {
      const event = this.#take(line.endsWith("\r") ? line.slice(0, -1) : line);
      if (event) events.push(event);
    }
    return events;
  }

  #take(line: string): StreamEvent | undefined {
    if (line === "") {
      const event = { name: this.#name, id: this.#id, data: this.#data.join("\n") };
      const isOne = this.#data.length > 0;
      [this.#name, this.#id, this.#data] = ["message", "", []];
      return isOne ? event : undefined;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#name = value;
    else if (field === "id") this.#id = value;
    else if (field === "data") this.#data.push(value);
    return undefined;
  }
}
