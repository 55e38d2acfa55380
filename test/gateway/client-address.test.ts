/** Which address counts as the client's, over real sockets: what headers of proxies and of clients change. */
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { PlatformCheck } from "../../gateway/http/caller-checks.ts";
import { createClientAddress } from "../../gateway/http/client-address.ts";
import { RequestMetrics } from "../../gateway/http/exchange.ts";
import { type Handler, type HandlerDeps, ok } from "../../gateway/http/handler-context.ts";
import type { PipelineDeps } from "../../gateway/http/pipeline.ts";
import { anyone, route } from "../../gateway/http/route.ts";
import { Server, type ServerDeps } from "../../gateway/http/server.ts";
import { AddressThrottle, PLATFORM_RATE } from "../../gateway/read-model/throttles.ts";
import { sendRaw } from "./raw-request.ts";

/** Answers with the gateway's view of the client. */
const showClient: Handler = ({ address, secure }) => Promise.resolve(ok({ address, secure }));
const routes = [
  route({
    method: "GET",
    path: "/client/",
    operation: "client",
    tag: "service",
    summary: "client",
    who: anyone,
    replies: {},
    errors: [],
    handler: showClient,
  }),
];

interface RunningServer {
  readonly server: Server;
  readonly port: number;
  readonly unnamedProxies: string[];
}

function startServer(trustedProxies: readonly string[]): RunningServer {
  const unnamedProxies: string[] = [];
  const clientAddress = createClientAddress({
    trustedProxies,
    isTls: false,
    onUnnamedProxy: (peer) => unnamedProxies.push(peer),
  });
  const platformCheck = new PlatformCheck(undefined, new AddressThrottle(PLATFORM_RATE));
  const pipeline = { log: pino({ level: "silent" }), handlerDeps: {} as HandlerDeps, platformCheck } as PipelineDeps;
  const metrics = new RequestMetrics(undefined);
  const server = new Server(
    {
      pipeline,
      polls: {} as ServerDeps["polls"],
      connectionBounds: { inAll: 1_000, perAddress: 500 },
      clientAddress,
      tls: undefined,
      metrics,
    },
    routes,
  );
  return { server, port: server.listen({ host: "127.0.0.1", port: 0, shared: false }), unnamedProxies };
}

let behindProxies: RunningServer;
let direct: RunningServer;
beforeAll(() => {
  behindProxies = startServer(["127.0.0.1", "10.0.0.0/8", "2001:db8:ffff::/48"]);
  direct = startServer([]);
});
afterAll(() => Promise.all([behindProxies.server.stop(), direct.server.stop()]));

const clientSchema = z.object({ address: z.string(), secure: z.boolean() });

async function clientOf(port: number, lines: readonly string[]): Promise<z.infer<typeof clientSchema>> {
  const head = ["GET /client/ HTTP/1.1", "Host: pay.example", ...lines, "", ""].join("\r\n");
  const answer = await sendRaw(port, [head]);
  return clientSchema.parse(JSON.parse(answer.body));
}

const addressOf = async (...forwarded: readonly string[]): Promise<string> => {
  const lines = forwarded.map((value) => `X-Forwarded-For: ${value}`);
  return (await clientOf(behindProxies.port, lines)).address;
};

describe("the client's address, with a trusted proxy", () => {
  it("several lines of X-Forwarded-For: the last one counts, because the client may have written the others", async () => {
    expect(await addressOf("198.51.100.66", "203.0.113.5")).toBe("203.0.113.5");
    expect(await addressOf("198.51.100.66", "198.51.100.67, 203.0.113.5")).toBe("203.0.113.5");
    expect(await addressOf("198.51.100.66", "203.0.113.5, 10.1.2.3")).toBe("203.0.113.5");
    expect(await addressOf("198.51.100.66, 203.0.113.5", "10.1.2.3", "10.1.2.4")).toBe("203.0.113.5");
  });

  it("several addresses in one line: the last one that is not a trusted proxy counts", async () => {
    expect(await addressOf("203.0.113.5")).toBe("203.0.113.5");
    expect(await addressOf("198.51.100.66,203.0.113.5 ,10.1.2.3")).toBe("203.0.113.5");
    expect(await addressOf("10.9.9.9, 203.0.113.5, 2001:db8:ffff::1")).toBe("203.0.113.5");
  });

  it("only trusted addresses: the first one counts, as a client in a trusted network", async () => {
    expect(await addressOf("10.5.5.5, 10.1.2.3")).toBe("10.5.5.5");
    expect(await addressOf("10.5.5.5", "127.0.0.1")).toBe("10.5.5.5");
  });

  it("a header without an address, or no header: the address of the nearest known proxy", async () => {
    expect(await addressOf("203.0.113.5, unknown, 10.1.2.3")).toBe("10.1.2.3");
    for (const nothing of ["", "unknown", "_hidden", "999.1.1.1", "0x7f.1", "203.0.113.5,"])
      expect(await addressOf(nothing), nothing).toBe("127.0.0.1");
    expect(await addressOf()).toBe("127.0.0.1");
    expect(await addressOf("203.0.113.5", "")).toBe("127.0.0.1");
  });

  it("one address in several spellings: the same client", async () => {
    for (const text of ["::ffff:203.0.113.5", "::FFFF:cb00:7105", "203.0.113.5:51234", "[::ffff:203.0.113.5]:51234"])
      expect(await addressOf(text), text).toBe("203.0.113.5");
    for (const text of ["2001:db8::1", "2001:DB8:0:0::1", "[2001:db8::1]", "[2001:db8::1]:443", "2001:db8::0.0.0.1"])
      expect(await addressOf(text), text).toBe("2001:db8:0:0:0:0:0:1");
    expect(await addressOf("203.0.113.5, ::ffff:10.1.2.3")).toBe("203.0.113.5");
  });

  it("X-Forwarded-Proto: the connection counts as encrypted when its last value is https", async () => {
    const isSecure = async (...values: readonly string[]): Promise<boolean> =>
      (
        await clientOf(
          behindProxies.port,
          values.map((value) => `X-Forwarded-Proto: ${value}`),
        )
      ).secure;
    expect(await isSecure("https")).toBe(true);
    expect(await isSecure("HTTPS")).toBe(true);
    expect(await isSecure("https", "http")).toBe(false);
    expect(await isSecure("http", "https")).toBe(true);
    expect(await isSecure("https, http")).toBe(false);
    expect(await isSecure()).toBe(false);
  });
});

describe("the client's address without a trusted proxy", () => {
  it("any header: ignored, the connection's address counts", async () => {
    const lines = ["X-Forwarded-For: 203.0.113.5", "X-Forwarded-For: 203.0.113.6", "X-Forwarded-Proto: https"];
    expect(await clientOf(direct.port, lines)).toEqual({ address: "127.0.0.1", secure: false });
  });

  it("a proxy in a private network that the settings do not name: reported once", async () => {
    const { port, unnamedProxies, server } = startServer([]);
    try {
      await clientOf(port, []);
      expect(unnamedProxies).toEqual([]);
      await clientOf(port, ["X-Forwarded-For: 203.0.113.5"]);
      await clientOf(port, ["X-Forwarded-For: 203.0.113.5"]);
      expect(unnamedProxies).toEqual(["127.0.0.1"]);
    } finally {
      await server.stop();
    }
  });
});
