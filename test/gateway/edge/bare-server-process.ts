/**
 * The HTTP server as a process, with a few routes and without the rest of the gateway. It reports its port over IPC, and
 * later its open connections. `MAX_CONNECTIONS` and `MAX_CONNECTIONS_PER_ADDRESS` limit them. With `TLS_FOLDER` it uses TLS.
 */
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import pino from "pino";
import { z } from "zod";
import { createClientAddress } from "../../../gateway/http/client-address.ts";
import { RequestMetrics } from "../../../gateway/http/exchange.ts";
import type { HandlerDeps } from "../../../gateway/http/handler-context.ts";
import type { PipelineDeps } from "../../../gateway/http/pipeline.ts";
import { anyone, type Route, route } from "../../../gateway/http/route.ts";
import { Server, type ServerDeps } from "../../../gateway/http/server.ts";

const facts = { tag: "service", summary: "", description: "", who: anyone, replies: {}, errors: [] } as const;
const get = (path: `/${string}`, handler: Parameters<typeof route>[0]["handler"]): Route =>
  route({ ...facts, method: "GET", path, operation: `get_${path}`, handler } as Parameters<typeof route>[0]);
const post = (path: `/${string}`, handler: Parameters<typeof route>[0]["handler"]): Route =>
  route({ ...facts, method: "POST", path, operation: `post_${path}`, body: z.unknown(), handler } as Parameters<
    typeof route
  >[0]);

const file = Buffer.alloc(400_000, "a");
const text = "a".repeat(60_000);
const later = async (): Promise<{ status: number; body: unknown }> => {
  await delay(Math.random() * 40);
  return { status: 200, body: {} };
};
const routes: readonly Route[] = [
  get("/small/", () => ({ status: 200, body: {} })),
  get("/file/", () => ({ status: 200, ready: file, headers: { "Content-Type": "text/plain" } })),
  get("/text/", () => ({ status: 200, body: text })),
  get("/later/", later),
  get("/none/", () => ({ status: 204 })),
  post("/small/", () => ({ status: 200, body: {} })),
  post("/text/", () => ({ status: 200, body: text })),
  post("/later/", later),
  post("/none/", () => ({ status: 204 })),
];

const { TLS_FOLDER, MAX_CONNECTIONS, MAX_CONNECTIONS_PER_ADDRESS } = process.env;
const server = new Server(
  {
    pipeline: {
      log: pino({ level: "silent" }),
      handlerDeps: {} as HandlerDeps,
      platformCheck: { hasKey: false },
    } as PipelineDeps,
    polls: {} as ServerDeps["polls"],
    connectionBounds: { inAll: Number(MAX_CONNECTIONS), perAddress: Number(MAX_CONNECTIONS_PER_ADDRESS) },
    clientAddress: createClientAddress({ trustedProxies: [], isTls: TLS_FOLDER !== undefined }),
    tls:
      TLS_FOLDER === undefined
        ? undefined
        : { keyFile: join(TLS_FOLDER, "key.pem"), certFile: join(TLS_FOLDER, "cert.pem") },
    metrics: new RequestMetrics(undefined),
  },
  routes,
);
const port = server.listen({ host: "127.0.0.1", port: 0, shared: false });
process.send?.({ port });
process.on("message", () => {
  const { connections, unsent } = server;
  process.send?.({ open: connections.open, madeRoom: connections.madeRoom, unsent: unsent.size, bytes: unsent.bytes });
});
process.on("disconnect", () => process.exit(0));
