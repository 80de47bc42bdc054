/** Connections over a Unix socket, for Node. */

import { request as ask } from "node:http";
import { Readable } from "node:stream";
import type { ReadableStream as NodeStream } from "node:stream/web";

/** Statuses that have no body. */
const WITHOUT_BODY = [204, 304];

/** What `new Client({ url: "http://localhost", fetch: unixFetch("/run/cofferdam.sock") })` connects by. */
export function unixFetch(socketPath: string): (request: Request) => Promise<Response> {
  return (request) =>
    new Promise((resolve, reject) => {
      const url = new URL(request.url);
      const { signal, method } = request;
      const headers = Object.fromEntries(request.headers);
      const path = url.pathname + url.search;
      const asked = ask({ socketPath, path, method, headers: { ...headers, host: "localhost" }, signal });
      asked.on("error", reject);
      asked.on("response", (answer) => {
        const status = answer.statusCode ?? 0;
        const told = new Headers();
        for (const [name, value] of Object.entries(answer.headers)) {
          for (const one of [value ?? []].flat()) told.append(name, one);
        }
        const body = Readable.toWeb(answer) as ReadableStream<Uint8Array>;
        resolve(new Response(WITHOUT_BODY.includes(status) ? null : body, { status, headers: told }));
      });
      if (request.body) {
        Readable.fromWeb(request.body as NodeStream).on("error", reject).pipe(asked);
      } else {
        asked.end();
      }
    });
}
