/**
 * The published configurations of nginx, HAProxy and Caddy, run by the distribution's programs in front of a real gateway:
 * what clients see through each, by which address the gateway counts them, and that no request is lost on an ending connection.
 */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { type ClientHttp2Session, connect as connectHttp2, type IncomingHttpHeaders, type Settings } from "node:http2";
import { connect, type LookupFunction } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { promisify } from "node:util";
import { Agent } from "undici";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { sendRaw } from "../gateway/raw-request.ts";
import { createAuthority } from "../support/certificates.ts";
import { type ConnectionSpy, spyConnections } from "../support/connection-spy.ts";
import { type DebianProgram, debianPrograms } from "../support/debian-programs.ts";
import { addDevice, type TestDevice } from "../support/devices.ts";
import { guideBlock, isInstalled, operationsGuide } from "../support/guide.ts";
import { type Answer, type Refused, type Sending, send } from "../support/http.ts";
import { openLive } from "../support/live-socket.ts";
import { addOperator, logIn, type Person } from "../support/people.ts";
import { PROXY_NAMES, type ProxyName, type ReverseProxy, SITE, startProxy } from "../support/reverse-proxies.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";

/** Packages may have to be fetched first. */
const FETCH_MS = 200_000;
/**
 * When a request comes on a connection from a proxy that was idle for longer than this, the spy ends the connection at that
 * moment. The gateway would end it later, and the published configurations end it earlier.
 */
const RACE_AFTER_IDLE_MS = 6_500;
const WAIT_MS = 7_000;
/** A connection that ends sooner than this after its last answer was not idle. */
const CLOSED_AT_ONCE_MS = 500;

/** The lines that name a gateway in the published configurations. */
const ONE_GATEWAY: Record<ProxyName, (port: number) => string> = {
  nginx: (port) => `server 127.0.0.1:${port};`,
  haproxy: (port) => `server gateway1 127.0.0.1:${port}`,
  caddy: (port) => `reverse_proxy 127.0.0.1:${port}`,
};
const ANOTHER_GATEWAY: Record<ProxyName, (port: number) => string> = {
  nginx: (port) => ` server 127.0.0.1:${port};`,
  haproxy: (port) => `\n    server gateway2 127.0.0.1:${port}`,
  caddy: (port) => ` 127.0.0.1:${port}`,
};

const authority = createAuthority();
let folder: TemporaryFolder;
let programs: Readonly<Record<ProxyName, DebianProgram>>;
let system: TestSystem;
let gatewayPort: number;
let gatewayIdleMs: Promise<number>;
let owner: Person;
let cashier: Person;
let stationId: number;
let device: TestDevice;
let uploads: Promise<PromiseSettledResult<string>[]>;
const proxies = new Map<ProxyName, ReverseProxy>();
const spies = new Map<ProxyName, ConnectionSpy>();
const others: { stop(): Promise<void> }[] = [];
const agents: Agent[] = [];

beforeAll(async () => {
  folder = temporaryFolder("proxies");
  programs = await debianPrograms(...PROXY_NAMES);
  system = await sharedSystem();
  gatewayPort = Number(new URL(system.baseUrl).port);
  gatewayIdleMs = idleUntilClosed(gatewayPort);
  const starting = PROXY_NAMES.map(async (name) => {
    const spy = await spyConnections({ to: gatewayPort, idleMs: RACE_AFTER_IDLE_MS });
    spies.set(name, spy);
    proxies.set(name, await startProxy(name, optionsFor(name, spy.port)));
  });
  await Promise.all(starting);
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  stationId = system.sandbox.stations[0]?.stationId as number;
  device = await newDisplay();
  uploads = Promise.allSettled(await beginUploads());
}, FETCH_MS);

afterAll(async () => {
  await Promise.all(agents.map((agent) => agent.destroy()));
  for (const proxy of [...proxies.values(), ...others]) await proxy.stop();
  for (const spy of spies.values()) await spy.stop();
  await system?.stop();
  folder.remove();
});

const optionsFor = (name: ProxyName, upstreamPort: number) => ({
  program: programs[name],
  upstreamPort,
  folder: folder.path,
  authority,
});

/** How long the gateway keeps a connection that is idle after one answer. */
async function idleUntilClosed(port: number): Promise<number> {
  const socket = connect(port, "127.0.0.1");
  socket.write("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  await once(socket, "data");
  const fromMs = performance.now();
  await once(socket, "close");
  return performance.now() - fromMs;
}

const newDisplay = (): Promise<TestDevice> =>
  addDevice(system.baseUrl, owner, { station_id: stationId, name: "Display", kind: "customer_display" });

/** Resolves the host name of the proxies to this machine. */
const lookUp: LookupFunction = (_name, { all }, found) =>
  all === true ? found(null, [{ address: "127.0.0.1", family: 4 }]) : found(null, "127.0.0.1", 4);

interface Guest {
  readonly agent: Agent;
  send<T = Record<string, unknown>>(method: string, path: string, sending?: Sending): Promise<Answer<T>>;
}

/** A guest who connects from this address, and who trusts only the authority of the test. */
function guestAt(address: string, { baseUrl }: ReverseProxy): Guest {
  const agent = new Agent({
    localAddress: address,
    connect: {
      ca: authority.cert,
      lookup: lookUp,
    },
  });
  agents.push(agent);
  return {
    agent,
    send: (method, path, sending = {}) => send(baseUrl, method, path, { ...sending, dispatcher: agent }),
  };
}

/** Paths that only the operators' network may reach. */
const OPERATOR_PATHS = ["/readyz", "/api/platform/v1/organizations/"];

/** The status of a GET, and whether the gateway answered it. The OpenAPI document has no error pages of proxies. */
async function get({ agent }: Guest, { baseUrl }: ReverseProxy, path: string) {
  const response = await agent.request({ origin: baseUrl, path, method: "GET" });
  await response.body.dump();
  return { status: response.statusCode, isOfGateway: response.headers["x-request-id"] !== undefined };
}

/** Claims an unknown code, with headers that name another address. */
const claim = (who: Guest, forged: string): Promise<Answer<Refused>> =>
  who.send<Refused>("POST", "/api/payments/v1/devices/enroll/", {
    json: { code: "7K3QX-9M2TB" },
    headers: { "x-forwarded-for": forged, forwarded: `for=${forged}`, "x-real-ip": forged },
  });

/** Claims once more than one address may, each time with another address in the headers. Returns the codes. */
async function claimAsMany(who: Guest): Promise<string[]> {
  const codes: string[] = [];
  for (let attempt = 0; attempt < 11; attempt += 1) codes.push((await claim(who, `203.0.113.${attempt}`)).body.code);
  return codes;
}

describe.each(PROXY_NAMES.map((name, index) => ({ name, network: `127.0.${index + 1}` })))(
  "$name in front of the gateway",
  ({ name, network }) => {
    let proxy: ReverseProxy;
    let guest: Guest;
    let origin: string;
    beforeAll(() => {
      proxy = proxies.get(name) as ReverseProxy;
      guest = guestAt(`${network}.1`, proxy);
      origin = proxy.baseUrl;
    });
    const cookieOfLogIn = async (): Promise<string> => {
      const json = system.cashier;
      const headers = { origin, "x-forwarded-for": "203.0.113.7", "x-forwarded-proto": "http" };
      const answer = await guest.send("POST", "/api/cashier/v1/session/", { json, headers });
      expect(answer.status, answer.text).toBe(200);
      expect(answer.headers.get("set-cookie")).toMatch(/; Secure(;|$)/);
      expect(answer.headers.get("strict-transport-security")).toBe("max-age=31536000");
      return (answer.headers.get("set-cookie") as string).split(";")[0] as string;
    };

    it("a log-in by TLS: a secure cookie, which counts for pages of this origin alone", async () => {
      const cookie = await cookieOfLogIn();
      const read = await guest.send("GET", "/api/cashier/v1/session/", { headers: { cookie } });
      expect(read.status).toBe(200);
      const port = new URL(origin).port;
      for (const foreign of ["https://evil.example", `http://${SITE}:${port}`, `https://${SITE}`]) {
        const headers = { cookie, origin: foreign };
        const refused = await guest.send<Refused>("DELETE", "/api/cashier/v1/session/", { headers });
        expect(refused.body, foreign).toMatchObject({ code: "csrf_refused" });
      }
      expect((await guest.send("DELETE", "/api/cashier/v1/session/", { headers: { cookie, origin } })).status).toBe(
        204,
      );
      await vi.waitFor(
        () => {
          const lines = system.log("gateway").split("\n");
          const logged = lines.findLast((line) => line.includes("cashier_log_out") && line.includes(":204,"));
          expect(logged).toContain(`"address":"${network}.1"`);
        },
        { timeout: 30_000 },
      );
    });

    it("a live view: it opens for pages of this origin and shows what happens at the station", async () => {
      const cookie = await cookieOfLogIn();
      await expect(
        openLive(origin, stationId, { cookie, origin: "https://evil.example" }, guest.agent),
      ).rejects.toThrow("refused");
      const live = await openLive(origin, stationId, { cookie, origin }, guest.agent);
      await live.until((message) => message.type === "state");
      const path = `stations/${stationId}/lease/`;
      await cashier.good("POST", path);
      await live.until((message) => message.type === "state" && message.lease !== null);
      await cashier.call("DELETE", path);
      await live.until((message) => message.type === "state" && message.lease === null);
      await live.close();
    });

    it("a device's polls: 200 with an ETag, then 304 without a body, and errors in the gateway's words", async () => {
      const path = "/api/payments/v1/devices/display/";
      const { credential: token } = device;
      const first = await guest.send("GET", path, { token });
      expect(first.status).toBe(200);
      const etag = first.headers.get("etag") as string;
      const again = await guest.send("GET", path, { token, headers: { "if-none-match": etag } });
      expect([again.status, again.text, again.headers.get("etag")]).toEqual([304, "", etag]);
      const summary = { text: "x".repeat(17 * 1_024) };
      const tooLarge = await guest.send<Refused>("POST", "/api/payments/v1/devices/heartbeat/", {
        token,
        json: { summary },
      });
      expect(tooLarge).toMatchObject({ status: 413, body: { code: "body_too_large" } });
    });

    it("a header line without a name, which hides later lines from the gateway: the proxy does not pass it on", async () => {
      const smuggled = "GET /healthz HTTP/1.1\r\nHost: smuggled\r\n\r\n";
      const lines = [`Host: ${SITE}`, ": x", `Content-Length: ${smuggled.length}`, "Connection: close", "", ""];
      const socket = connectTls({ port: proxy.port, host: "127.0.0.1", servername: SITE, ca: authority.cert });
      socket.write(`GET /healthz HTTP/1.1\r\n${lines.join("\r\n")}${smuggled}`);
      const text = (await socket.toArray()).join("");
      // There is one answer only: the proxy has read the rest as a body, or has refused the line.
      expect(text.split("HTTP/1.1 ")).toHaveLength(2);
    });

    it("the operators' paths: the proxy refuses them from everywhere but their network", async () => {
      const operator = guestAt("127.0.0.1", proxy);
      for (const path of OPERATOR_PATHS) {
        expect(await get(guest, proxy, path), path).toEqual({ status: 403, isOfGateway: false });
        expect((await get(operator, proxy, path)).isOfGateway, path).toBe(true);
      }
      expect((await guest.send("GET", "/healthz")).status).toBe(200);
    });

    it("a throttle by address: it counts a guest by the address that the proxy has seen, whatever the guest sends", async () => {
      expect(await claimAsMany(guest)).toEqual([...Array<string>(10).fill("enrollment_code_invalid"), "throttled"]);
      expect((await claim(guest, "127.0.0.1")).body.code).toBe("throttled");
      const neighbour = guestAt(`${network}.2`, proxy);
      expect((await claim(neighbour, `${network}.1`)).body.code).toBe("enrollment_code_invalid");
    });
  },
);

/** Longer than a proxy waits for any other body. */
const SENDING_MS = 12_000;
const PIECES = 48;
const piece = Buffer.alloc(64 * 1_024, "a");
async function* slowly(): AsyncIterable<Buffer> {
  for (let sent = 0; sent < PIECES; sent += 1) {
    yield piece;
    await delay(SENDING_MS / PIECES);
  }
}

/** Begins one slow upload through each proxy, which continues while other tests run. */
async function beginUploads(): Promise<Promise<string>[]> {
  const operator = await addOperator(system.baseUrl, owner);
  const account = { provider: "sandbox", reference: "acct-1", name: "Bar", mode: "test" };
  const { account_id: accountId } = await operator.good<{ account_id: number }>("POST", "accounts/", { body: account });
  return PROXY_NAMES.map(async (name, index) => {
    const proxy = proxies.get(name) as ReverseProxy;
    const { statusCode, body } = await guestAt(`127.0.${index + 1}.9`, proxy).agent.request({
      origin: proxy.baseUrl,
      path: `/api/reconciliation/v1/accounts/${accountId}/imports/?file_name=${name}.csv`,
      method: "POST",
      headers: { authorization: `Bearer ${operator.token}`, "content-length": String(PIECES * piece.length) },
      body: Readable.from(slowly()),
    });
    return `${name} ${statusCode} ${(await body.text()).slice(0, 100)}`;
  });
}

describe("a proxy that appends a line to X-Forwarded-For", () => {
  it("a guest who has written one before: the throttle counts the address that the proxy has seen", async () => {
    const replace = [["http-request set-header X-Forwarded-For %[src]", "option forwardfor"]] as const;
    const appending = await startProxy("haproxy", { ...optionsFor("haproxy", gatewayPort), replace });
    others.push(appending);
    const codes = await claimAsMany(guestAt("127.0.8.1", appending));
    expect(codes).toEqual([...Array<string>(10).fill("enrollment_code_invalid"), "throttled"]);
    expect((await claim(guestAt("127.0.8.2", appending), "127.0.8.1")).body.code).toBe("enrollment_code_invalid");
  });
});

describe("the operators' guide", () => {
  it("the guide's check of a proxy: it prints what the guide shows", async () => {
    if (!isInstalled("curl", "--version")) throw new Error("This test needs curl.");
    const { baseUrl, port } = proxies.get("nginx") as ReverseProxy;
    const certificate = join(folder.path, "authority.pem");
    writeFileSync(certificate, authority.cert);
    writeFileSync(join(folder.path, ".curlrc"), `cacert = "${certificate}"\nresolve = "${SITE}:${port}:127.0.0.1"\n`);
    const lines = guideBlock("sh", "curl -i", operationsGuide).replaceAll(`https://${SITE}`, baseUrl);
    const { stdout } = await promisify(execFile)("sh", ["-c", lines], { env: { ...process.env, HOME: folder.path } });
    expect(stdout).toMatch(/^HTTP\/1\.1 200 /);
    expect(stdout).toMatch(/\n404\n$/);
  });
});

describe.each(["haproxy", "caddy"] as const)("%s by HTTP/2", (name) => {
  it("a page: it passes the check of the origin, and a live view uses the same connection if the proxy offers it", async () => {
    const { baseUrl: origin } = proxies.get(name) as ReverseProxy;
    const session = connectHttp2(origin, { ca: authority.cert, lookup: lookUp });
    try {
      const [settings] = (await once(session, "remoteSettings")) as [Settings];
      const login = await requestHttp2(session, "POST", "/api/cashier/v1/session/", { origin }, system.cashier);
      expect(login.status).toBe(200);
      const cookie = String(login.headers["set-cookie"]?.[0]).split(";")[0] as string;
      // Caddy does not offer it, so a browser opens a connection of HTTP/1.1 for it.
      expect(settings.enableConnectProtocol).toBe(name === "haproxy");
      if (settings.enableConnectProtocol === true) {
        const live = session.request({
          ":method": "CONNECT",
          ":protocol": "websocket",
          ":path": `/api/cashier/v1/stations/${stationId}/live/`,
          "sec-websocket-version": "13",
          origin,
          cookie,
        });
        const [answer] = (await once(live, "response")) as [IncomingHttpHeaders & { ":status"?: number }];
        expect(answer[":status"]).toBe(200);
        expect(String((await once(live, "data"))[0])).toContain('"type":"state"');
        live.close();
      }
      const end = { origin, cookie };
      expect((await requestHttp2(session, "DELETE", "/api/cashier/v1/session/", end)).status).toBe(204);
    } finally {
      session.destroy();
    }
  });
});

async function requestHttp2(
  session: ClientHttp2Session,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  json?: unknown,
): Promise<{ status: number | undefined; headers: IncomingHttpHeaders }> {
  const text = json === undefined ? "" : JSON.stringify(json);
  // Sends the length, as browsers do. Without it the proxy would send the body in chunks, which the gateway refuses.
  const body = text === "" ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(text) };
  const stream = session.request({ ":method": method, ":path": path, ...headers, ...body });
  stream.end(text === "" ? undefined : text);
  const [answer] = (await once(stream, "response")) as [IncomingHttpHeaders & { ":status"?: number }];
  stream.resume();
  await once(stream, "end");
  return { status: answer[":status"], headers: answer };
}

// This comes before the tests of idle connections, because no upload may use a connection that they watch.
describe("an upload", () => {
  it("a statement file of three megabytes that takes twelve seconds: each proxy passes it on", async () => {
    const passedOn = PROXY_NAMES.map((name) => ({
      status: "fulfilled",
      value: expect.stringMatching(`^${name} 20[01] \\{"import_id"`) as string,
    }));
    expect(await uploads).toEqual(passedOn);
  });
});

describe("a connection from a proxy to the gateway", () => {
  const beat = async (proxy: ReverseProxy, token: string): Promise<number> => {
    const guest = guestAt("127.0.9.1", proxy);
    // A proxy does not repeat a POST, so the test notices a lost one.
    const json = { summary: {} };
    const response = await guest.agent.request({
      origin: proxy.baseUrl,
      path: "/api/payments/v1/devices/heartbeat/",
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(json),
    });
    await response.body.dump();
    return response.statusCode;
  };

  it("an idle connection: each proxy ends it before the gateway may end it, so that no request is lost", async () => {
    // A new device: its throttle has counted no request yet.
    const { credential } = await newDisplay();
    const beats = (of: readonly ReverseProxy[]): Promise<number[]> =>
      Promise.all(of.map((proxy) => beat(proxy, credential)));
    const spy = await spyConnections({ to: gatewayPort, idleMs: RACE_AFTER_IDLE_MS });
    const replace = [["keepalive_timeout 5s;", "keepalive_timeout 60s;"]] as const;
    const careless = await startProxy("nginx", { ...optionsFor("nginx", spy.port), replace });
    others.push(careless, spy);
    const published = PROXY_NAMES.map((name) => proxies.get(name) as ReverseProxy);
    const seen = new Map(PROXY_NAMES.map((name) => [name, spies.get(name)?.connections.length]));
    // As many connections as in a busy moment.
    const crowd = published.flatMap((proxy) => Array.from({ length: 20 }, () => guestAt("127.0.9.2", proxy)));
    await Promise.all(crowd.map((guest) => guest.send("GET", "/healthz")));
    expect(await beats([...published, careless])).toEqual([200, 200, 200, 200]);
    await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
    for (const name of PROXY_NAMES) {
      const ends = spies.get(name)?.connections.slice(seen.get(name)) ?? [];
      // HAProxy's checks ask the gateway to close the connection. Caddy's checks keep one connection in use.
      const open = ends.filter(({ endedBy }) => endedBy === undefined);
      expect(open.length, name).toBeLessThanOrEqual(name === "caddy" ? 1 : 0);
      const idle = ends.filter(({ idleMs = 0 }) => idleMs > CLOSED_AT_ONCE_MS);
      expect(idle.length).toBeGreaterThan(0);
      for (const { endedBy, idleMs } of idle) {
        expect([name, endedBy]).toEqual([name, "proxy"]);
        expect(idleMs).toBeLessThan(RACE_AFTER_IDLE_MS);
      }
    }
    // The last proxy ends no idle connections in time. Its 502 proves that the spy forces the race.
    expect(await beats([...published, careless])).toEqual([200, 200, 200, 502]);
    expect(spy.connections.map(({ endedBy }) => endedBy)).toContain("race");
  });

  it.each(PROXY_NAMES)(
    "a gateway that was killed, beside another one: %s sends every request to the other one",
    async (name) => {
      const { credential } = await newDisplay();
      const [killed, other] = await Promise.all(
        [1, 2].map(() => spyConnections({ to: gatewayPort, idleMs: RACE_AFTER_IDLE_MS })),
      );
      if (killed === undefined || other === undefined) throw new Error("There is no gateway.");
      others.push(other);
      const one = ONE_GATEWAY[name](killed.port);
      const replace = [[one, `${one}${ANOTHER_GATEWAY[name](other.port)}`]] as const;
      const proxy = await startProxy(name, { ...optionsFor(name, killed.port), replace });
      others.push(proxy);
      const guests = Array.from({ length: 20 }, () => guestAt("127.0.9.4", proxy));
      const statuses = async () =>
        (await Promise.all(guests.map((guest) => guest.send("GET", "/healthz")))).map(({ status }) => status);
      const good = guests.map(() => 200);
      expect(await statuses()).toEqual(good);
      for (const { connections } of [killed, other]) expect(connections.length).toBeGreaterThan(0);
      await killed.stop();
      expect(await statuses()).toEqual(good);
      // One request after another: a proxy that picks a gateway at random would reach the killed one.
      for (let sent = 0; sent < 5; sent += 1) expect(await beat(proxy, credential)).toBe(200);
    },
  );

  it("HTTP/1.0, which nginx speaks by default: the gateway answers 505 and closes the connection", async () => {
    const replace = [["proxy_http_version 1.1;", ""]] as const;
    const older = await startProxy("nginx", { ...optionsFor("nginx", gatewayPort), replace });
    others.push(older);
    const answer = await guestAt("127.0.9.3", older).agent.request({
      origin: older.baseUrl,
      path: "/healthz",
      method: "GET",
    });
    expect(answer.statusCode).toBe(505);
    expect(await answer.body.text()).toContain("does not support HTTP/1.0");
    const raw = await sendRaw(gatewayPort, ["GET /healthz HTTP/1.0\r\nHost: x\r\n\r\n"]);
    expect(raw).toMatchObject({ status: 505, isClosed: true });
  });

  it("more than 4 KiB of headers: the gateway answers 431 and closes the connection", async () => {
    const request = (bytes: number): string =>
      `GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: ${"x".repeat(bytes)}\r\n\r\n`;
    expect(await sendRaw(gatewayPort, [request(4_000)])).toMatchObject({ status: 200, isClosed: false });
    expect(await sendRaw(gatewayPort, [request(4_096)])).toMatchObject({ status: 431, isClosed: true });
  });

  it("an idle connection that no proxy ends: the gateway ends it after 8 to 12 seconds", async () => {
    // The gateway's timer has steps of four seconds. The spy must force the race before this time.
    expect(await gatewayIdleMs).toBeGreaterThan(RACE_AFTER_IDLE_MS);
    expect(await gatewayIdleMs).toBeLessThan(13_000);
  });
});
