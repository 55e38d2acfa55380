/** A webhook target: a real HTTPS server on loopback whose answers a test sets. */
import { createHmac } from "node:crypto";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { type Authority, createAuthority } from "../support/certificates.ts";

export interface Received {
  readonly path: string;
  readonly body: string;
  readonly deliveryId: number;
  readonly eventType: string;
  readonly signature: string;
  readonly atMs: number;
}

export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly afterMs?: number;
  /** The receiver answers when this resolves. */
  readonly after?: Promise<void>;
}

/** `hang` never answers; a number is a status. */
export type Behaviour = (received: Received) => Answer | number | "hang";

export interface Receiver {
  /** The authority of its certificate, for WEBHOOK_CA_FILE. */
  readonly authority: Authority;
  readonly received: Received[];
  /** The requests that arrived at a path. */
  at(path: string): readonly Received[];
  url(path: string): string;
  /** Sets how it answers at a path; 200 by default. */
  behave(path: string, behaviour: Behaviour): void;
  /** The maximum of simultaneous requests at paths with this prefix. */
  mostAtOnce(prefix: string): number;
  stop(): Promise<void>;
}

export async function startReceiver(): Promise<Receiver> {
  const authority = createAuthority();
  const { cert, key } = authority.issue({ names: ["localhost"] });
  const received: Received[] = [];
  const byPath = new Map<string, Received[]>();
  const behaviours = new Map<string, Behaviour>();
  /** The number of requests in progress, by path and by the first folder of paths. */
  const underWay = new Map<string, number>();
  const most = new Map<string, number>();
  const server: Server = createServer({ cert, key }, (request, response) => {
    const path = request.url ?? "/";
    const counted = [path, prefixOf(path)];
    for (const one of counted) {
      const now = (underWay.get(one) ?? 0) + 1;
      underWay.set(one, now);
      most.set(one, Math.max(most.get(one) ?? 0, now));
    }
    let body = "";
    request.setEncoding("utf8").on("data", (chunk: string) => {
      body += chunk;
    });
    let isUnderWay = true;
    // Counted down before the answer is sent: the signer may send its next request before this server notices the end.
    const over = (): void => {
      if (isUnderWay) for (const one of counted) underWay.set(one, (underWay.get(one) ?? 1) - 1);
      isUnderWay = false;
    };
    response.once("close", over);
    request.on("end", () => {
      const envelope = JSON.parse(body) as { delivery_id: number; event_type: string };
      const one: Received = {
        path,
        body,
        deliveryId: envelope.delivery_id,
        eventType: envelope.event_type,
        signature: String(request.headers["x-service-robotics-signature"]),
        atMs: Date.now(),
      };
      received.push(one);
      const here = byPath.get(path) ?? [];
      here.push(one);
      byPath.set(path, here);
      const answer = behaviours.get(path)?.(one) ?? 200;
      if (answer === "hang") return;
      const {
        status,
        headers,
        body: text = "",
        afterMs = 0,
        after,
      } = typeof answer === "number" ? { status: answer } : answer;
      const end = (): void => {
        over();
        response.writeHead(status, headers).end(text);
      };
      if (after !== undefined) void after.then(end);
      else if (afterMs === 0) end();
      else setTimeout(end, afterMs);
    });
  });
  server.keepAliveTimeout = 30_000;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    authority,
    received,
    at: (path) => [...(byPath.get(path) ?? [])],
    url: (path) => `https://localhost:${port}${path}`,
    behave: (path, behaviour) => void behaviours.set(path, behaviour),
    mostAtOnce: (prefix) => most.get(prefix) ?? 0,
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

/** The path's first folder: `/a/1` and `/a/2` belong together. */
function prefixOf(path: string): string {
  return `/${path.split("/")[1] ?? ""}/`;
}

/** The parts of a signature header. */
export function parseSignature(header: string): { readonly t: number; readonly v1: readonly string[] } {
  const parts = header.split(",").map((part) => part.split("=") as [string, string]);
  const values = (name: string): string[] => parts.filter(([key]) => key === name).map(([, value]) => value);
  return { t: Number(values("t")[0]), v1: values("v1") };
}

/** The contract's signature, computed a second time. */
export function expectedSignature(secret: string, t: number, body: string): string {
  return createHmac("sha256", secret).update(`${t}.${body}`).digest("hex");
}
