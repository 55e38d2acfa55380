/**
 * A target of webhooks in a separate process. It answers at once and reports when each delivery arrived. Times are on the
 * system's clock with microseconds, which the processes of one machine share.
 */
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";

const [certFile = "", keyFile = ""] = process.argv.slice(2);
/** Delivery ids and when they arrived. */
let arrived: [number, number][] = [];

const server = createServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, (request, response) => {
  const atMs = performance.timeOrigin + performance.now();
  request.on("data", (chunk: Buffer) => {
    // A body is shorter than one TLS record, and the id is its first field.
    arrived.push([Number.parseInt(chunk.toString("latin1", 15, 35), 10), atMs]);
  });
  request.on("end", () => response.writeHead(200, { "content-length": 0 }).end());
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => {
  process.send?.({ ready: true, port: (server.address() as AddressInfo).port });
});
process.on("message", () => {
  process.send?.({ arrived });
  arrived = [];
});
process.on("disconnect", () => process.exit(0));
