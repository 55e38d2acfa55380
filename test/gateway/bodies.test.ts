/** Bodies that the gateway refuses: too large, cut off, too deep, of a wrong type, invalid (design §4, "bodies"). */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CONNECTION_LIMITS } from "../../gateway/limits.ts";
import { heartbeatSubject } from "../../services/bus/subjects.ts";
import { DEVICES } from "../support/devices.ts";
import { type Answer, type Refused, send } from "../support/http.ts";
import { COMPANION_SCOPES, type GatewayWorld, startGatewayWorld, type TestStation } from "./gateway-world.ts";
import { sendRaw } from "./raw-request.ts";

const REPORT = `${DEVICES}assignment/report/`;
const HEARTBEAT = `${DEVICES}heartbeat/`;

let world: GatewayWorld;
let station: TestStation;
beforeAll(async () => {
  world = await startGatewayWorld();
  station = await world.openStation(1);
});
afterAll(() => world.stop());

/** Each request has a new credential, so that the throttle of a credential refuses none of them. */
const companion = (): Promise<string> => world.credential(station.companionId, 1, COMPANION_SCOPES);

async function post<T = Refused>(
  path: string,
  body: string | FormData | URLSearchParams,
  type?: string,
): Promise<Answer<T>> {
  const headers: Record<string, string> = type === undefined ? {} : { "content-type": type };
  return send<T>(world.baseUrl, "POST", path, { token: await companion(), body, headers });
}
const report = (fields: unknown): Promise<Answer<Refused>> => post(REPORT, JSON.stringify(fields), "application/json");
const beat = (summary: unknown): Promise<Answer<Refused>> =>
  post(HEARTBEAT, JSON.stringify({ summary }), "application/json");

async function sendHead(path: string, lines: readonly string[]): Promise<string> {
  const credential = await companion();
  return [`POST ${path} HTTP/1.1`, "Host: x", `Authorization: Bearer ${credential}`, ...lines, "", ""].join("\r\n");
}

/** Sends a head; `endsAfterMs` is the time from the answer to the end of the connection. */
async function answerAndEnd(socket: Socket, head: string): Promise<{ answer: string; endsAfterMs: number }> {
  const ended = once(socket, "close");
  socket.write(head);
  const [answer] = (await once(socket, "data")) as [Buffer];
  const answeredAtMs = performance.now();
  await ended;
  return { answer: answer.toString("latin1"), endsAfterMs: performance.now() - answeredAtMs };
}

describe("the size of a body", () => {
  it("a body of 16 KiB: accepted; one byte more: 413", async () => {
    const padded = (length: number): string => {
      const text = JSON.stringify({ intent_id: "x", pad: "" });
      return text.replace('"pad":""', `"pad":"${"a".repeat(length - text.length)}"`);
    };
    expect((await post(REPORT, padded(16_384), "application/json")).body.code).toBe("invalid_request");
    const tooLarge = await post(REPORT, padded(16_385), "application/json");
    expect([tooLarge.status, tooLarge.body.code]).toEqual([413, "body_too_large"]);
  });

  it("a Content-Length above the limit: refused before the body is sent, and the connection ends", async () => {
    const answer = await sendRaw(world.gateway.port, [
      await sendHead(REPORT, ["Content-Type: application/json", "Content-Length: 99999999"]),
    ]);
    expect([answer.status, answer.isClosed]).toEqual([413, true]);
    expect(JSON.parse(answer.body)).toMatchObject({ code: "body_too_large" });
  });

  it.each<[string, string, string[]]>([
    ["too large", HEARTBEAT, []],
    ["to an unknown path", `${DEVICES}nowhere/`, []],
    ["after a head with two keys", HEARTBEAT, ["Idempotency-Key: a", "Idempotency-Key: b"]],
  ])(
    "a body that is refused while the client sends it, %s: the client can send the rest and read the answer",
    async (_, path, lines) => {
      const length = 64 * 1_024;
      const socket = connect(world.gateway.port, "127.0.0.1");
      const errors: Error[] = [];
      socket.on("error", (error) => errors.push(error));
      socket.write(await sendHead(path, [...lines, "Content-Type: application/json", `Content-Length: ${length}`]));
      const [answer] = (await once(socket, "data")) as [Buffer];
      for (let sent = 0; sent < length; sent += length / 4) {
        socket.write("x".repeat(length / 4));
        await delay(20);
      }
      expect(errors).toEqual([]);
      expect(answer.toString()).toMatch(/^HTTP\/1\.1 4[\s\S]+\r\nConnection: close\r\n/);
      socket.end();
      await once(socket, "close");
    },
  );

  it("refused bodies on more connections than may wait for the rest: some connections end soon after the answer", async () => {
    const { bodiesFollowing, bodyFollowsMs } = CONNECTION_LIMITS;
    // Needs no replica, which may be stale for a moment while hundreds of connections begin.
    const head = await sendHead(`${DEVICES}enroll/`, ["Content-Length: 99999"]);
    const sockets = await Promise.all(
      Array.from({ length: bodiesFollowing + 100 }, async () => {
        const socket = connect(world.gateway.port, "127.0.0.1");
        await once(socket, "connect");
        return socket;
      }),
    );
    // All heads are written at once, so that the first connections still wait when the last answer is written.
    const answers = await Promise.all(sockets.map((socket) => answerAndEnd(socket, head)));
    for (const { answer } of answers) expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(Math.min(...answers.map(({ endsAfterMs }) => endsAfterMs))).toBeLessThan(bodyFollowsMs / 2);
  });

  it("a chunked body without a Content-Length: 411, and the connection ends", async () => {
    const answer = await sendRaw(world.gateway.port, [
      await sendHead(HEARTBEAT, ["Content-Type: application/json", "Transfer-Encoding: chunked"]),
      '5\r\n{"sum\r\n',
      'c\r\nmary":{"a":1\r\n',
      "2\r\n}}\r\n0\r\n\r\n",
    ]);
    expect([answer.status, answer.isClosed]).toEqual([411, true]);
    expect(JSON.parse(answer.body)).toMatchObject({ code: "length_required" });
  });
});

describe.concurrent("the end of a body", () => {
  const body = '{"intent_id":1}';
  const type = "Content-Type: application/json";
  /** A second request in the same packet: a server that answers it has read a body as a request. */
  const next = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
  const pollHead = async (lines: readonly string[]): Promise<string> =>
    (await sendHead(`${DEVICES}assignment/`, lines)).replace("POST", "GET");

  it.each<[string, number, string[]]>([
    ["two lengths that differ", 400, [`Content-Length: ${body.length}`, "Content-Length: 0"]],
    ["two lengths that are the same", 400, [`Content-Length: ${body.length}`, `content-length: ${body.length}`]],
    ["an empty length before a length", 400, ["Content-Length:", `Content-Length: ${body.length}`]],
    ["a list of lengths", 400, [`Content-Length: ${body.length}, ${body.length}`]],
    ["a length with a sign", 400, [`Content-Length: +${body.length}`]],
    ["a length and chunks", 400, [`Content-Length: ${body.length}`, "Transfer-Encoding: chunked"]],
    ["chunks", 411, ["transfer-encoding: Chunked"]],
    ["chunks that are compressed", 411, ["Transfer-Encoding: gzip, chunked"]],
    ["another encoding", 411, ["Transfer-Encoding: identity"]],
    ["an empty encoding", 411, ["Transfer-Encoding:"]],
    ["an encoding that only contains the word chunked", 411, ["Transfer-Encoding: xchunked"]],
    ["two encodings", 411, ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"]],
  ])("a head with %s: %i, and the connection ends", async (_what, status, lines) => {
    const { port } = world.gateway;
    // The chunks are complete, so that the gateway refuses the head and not the framing.
    const sent = status === 411 ? `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n` : body;
    const isNotRead = expect.not.stringMatching(/ 200 /) as string;
    // A refused connection stays open for a second, so the test sends all four requests at once.
    const [posted, followed, polled, polledTwice] = await Promise.all([
      sendRaw(port, [`${await sendHead(REPORT, [type, ...lines])}${sent}`]),
      sendRaw(port, [`${await sendHead(REPORT, [type, ...lines])}${sent}${next}`]),
      sendRaw(port, [`${await pollHead(lines)}${sent}`]),
      sendRaw(port, [`${await pollHead(lines)}${sent}${next}`]),
    ]);
    expect([posted.status, posted.isClosed]).toEqual([status, true]);
    expect([followed.isClosed, `${followed.head}${followed.body}`]).toEqual([true, isNotRead]);
    expect([polled.status, polled.isClosed]).toEqual([status, true]);
    expect([polledTwice.isClosed, `${polledTwice.head}${polledTwice.body}`]).toEqual([true, isNotRead]);
  });

  it("a head with one length: accepted, with the header's name in any case", async () => {
    const line = `content-length: ${body.length}`;
    const answer = await sendRaw(world.gateway.port, [`${await sendHead(REPORT, [type, line])}${body}`]);
    expect([answer.status, (JSON.parse(answer.body) as Refused).errors?.[0]?.pointer]).toEqual([400, "/outcome"]);
    const polled = await sendRaw(world.gateway.port, [await pollHead(["Content-Length: 0"])]);
    expect(polled.status).toBe(200);
  });
});

describe("a body that is cut off", () => {
  it("the connection ends before the body is complete: no timeout is counted, and the next request is served", async () => {
    for (let round = 0; round < 20; round += 1) {
      const pieces = [
        await sendHead(REPORT, ["Content-Type: application/json", "Content-Length: 100"]),
        '{"intent_id":',
      ];
      await sendRaw(world.gateway.port, pieces, { pauseMs: 1, waitMs: 20 });
    }
    expect((await report({})).status).toBe(400);
  });
});

describe("a JSON body", () => {
  it.each([
    ["cut off", '{"intent_id":1,"outc'],
    ["empty", ""],
    ["not JSON", "intent_id=1"],
    ["not UTF-8", "\xff"],
    ["an array", "[]"],
    ["a number", "7"],
    ["null", "null"],
    ["text", '"x"'],
  ])("a body that is %s: 400", async (name, text) => {
    const body = name === "not UTF-8" ? Buffer.from([0x7b, 0xff, 0x7d]) : text;
    const headers = { "content-type": "application/json" };
    const answer = await send<Refused>(world.baseUrl, "POST", REPORT, { token: await companion(), body, headers });
    expect([answer.status, answer.body.code]).toEqual([400, "invalid_request"]);
    expect(answer.body.errors?.[0]?.pointer).toBe("");
  });

  it("a body with 32 levels: read; with 33 or 8,000 levels: refused", async () => {
    const nested = (levels: number): string => `{"x":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`;
    const at32 = await post(REPORT, nested(32), "application/json");
    expect(at32.body.errors?.map(({ pointer }) => pointer)).toEqual(["/intent_id", "/outcome"]);
    for (const levels of [33, 8_000]) {
      const answer = await post(REPORT, nested(levels), "application/json");
      expect(answer.body.errors).toEqual([{ pointer: "", code: "not_json", detail: "Nested deeper than 32 levels." }]);
    }
    // Brackets in text do not count as levels.
    expect((await report({ note: "[".repeat(100), quote: '\\"{{{{' })).body.errors).toHaveLength(2);
  });

  it.each([
    ["NUL", "a\u0000b"],
    ["half a surrogate pair", "a\ud800b"],
  ])("a text with %s: 400, because no database could store it; a heartbeat's summary keeps it", async (_name, text) => {
    const logIn = (fields: object) => post("/api/cashier/v1/session/", JSON.stringify(fields), "application/json");
    const answer = await logIn({ email: text, password: "x" });
    expect([answer.status, answer.body.errors?.map(({ pointer }) => pointer)]).toEqual([400, ["/email"]]);
    expect((await logIn({ [text]: 1 })).status).toBe(400);
    const summary = { note: text, [text]: 1 };
    expect((await beat(summary)).status).toBe(200);
    const stored = await world.bus.jsm.streams.getMessage("LIVENESS", {
      last_by_subj: heartbeatSubject(1, station.companionId),
    });
    expect(stored?.json()).toMatchObject({ summary });
  });
});

describe("invalid fields of a report", () => {
  const good = { intent_id: 1, outcome: "reported_success" };
  it.each([
    ["no fields", {}, ["/intent_id", "/outcome"]],
    ["an intent id as text", { ...good, intent_id: "1" }, ["/intent_id"]],
    ["a fraction as intent id", { ...good, intent_id: 1.5 }, ["/intent_id"]],
    ["an intent id above the largest safe integer", { ...good, intent_id: 1e300 }, ["/intent_id"]],
    ["null as intent id", { ...good, intent_id: null }, ["/intent_id"]],
    ["an unknown outcome", { ...good, outcome: "reported_maybe" }, ["/outcome"]],
    ["an outcome in capitals", { ...good, outcome: "REPORTED_SUCCESS" }, ["/outcome"]],
    ["an array as outcome", { ...good, outcome: ["reported_success"] }, ["/outcome"]],
    ["a number as reference", { ...good, provider_reference: 7 }, ["/provider_reference"]],
    ["null as reference", { ...good, provider_reference: null }, ["/provider_reference"]],
    ["an array as code", { ...good, provider_code: ["00"] }, ["/provider_code"]],
    ["an object as key", { ...good, client_idempotency_key: {} }, ["/client_idempotency_key"]],
  ])("%s: the error names each invalid field", async (_name, fields, pointers) => {
    const answer = await report(fields);
    expect([answer.status, answer.body.code]).toEqual([400, "invalid_request"]);
    expect(answer.body.errors?.map(({ pointer }) => pointer)).toEqual(pointers);
  });
});

describe("content types", () => {
  it.each([
    ["text/plain", REPORT],
    ["application/x-www-form-urlencoded", REPORT],
    ["multipart/form-data; boundary=x", REPORT],
    ["", REPORT],
    ["application/jsonp", REPORT],
    ["text/plain", HEARTBEAT],
    ["application/xml", HEARTBEAT],
  ])("Content-Type %j at %s: 415 with the accepted types", async (type, path) => {
    const body = Buffer.from('{"intent_id":1}');
    const headers = { "content-type": type };
    const answer = await send<Refused>(world.baseUrl, "POST", path, { token: await companion(), body, headers });
    expect([answer.status, answer.body.code]).toEqual([415, "unsupported_media_type"]);
    expect(answer.headers.get("accept")).toContain("application/json");
  });

  it("Content-Type application/json: accepted in any case and with parameters", async () => {
    expect((await post(REPORT, "{}", "Application/JSON; charset=utf-8")).status).toBe(400);
  });
});

describe("a heartbeat", () => {
  const multipart = (fields: Record<string, string>): FormData => {
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
    return form;
  };
  const summary = JSON.stringify({ app_version: "4.2.0", battery_percent: 81 });

  it.each([
    ["no body", async () => send<Refused>(world.baseUrl, "POST", HEARTBEAT, { token: await companion() })],
    ["an empty object", () => post(HEARTBEAT, "{}", "application/json")],
    ["a summary", () => beat({ battery: { percent: 81, charging: false } })],
    ["a field of a later version", () => post(HEARTBEAT, '{"summary":{},"sequence":5}', "application/json")],
    ["a form", () => post(HEARTBEAT, new URLSearchParams({ summary }))],
    ["a form without a summary", () => post(HEARTBEAT, new URLSearchParams({ other: "x" }))],
    [
      "a form with another field that begins like JSON",
      () => post(HEARTBEAT, new URLSearchParams({ signal: "[-71 dBm]" })),
    ],
    ["a multipart form", () => post(HEARTBEAT, multipart({ summary }))],
  ])("a heartbeat with %s: accepted", async (_name, sendHeartbeat) => {
    const answer = await sendHeartbeat();
    expect([answer.status, answer.text.includes("device_id")]).toEqual([200, true]);
  });

  it("a heartbeat: stored with its summary before the answer", async () => {
    await beat({ network: "wifi" });
    const stored = await world.bus.jsm.streams.getMessage("LIVENESS", {
      last_by_subj: heartbeatSubject(1, station.companionId),
    });
    expect(stored?.json()).toEqual({ atMs: expect.any(Number) as number, summary: { network: "wifi" } });
  });

  it.each([
    ["text", "x"],
    ["an array", [1]],
    ["null", null],
    ["more than 4 KiB", { note: "x".repeat(4_096) }],
    ["more than 8 levels", { a: { b: { c: { d: { e: { f: { g: { h: { i: 1 } } } } } } } } }],
  ])("a summary that is %s: 400", async (_name, value) => {
    const answer = await beat(value);
    expect([answer.status, answer.body.errors?.[0]?.pointer]).toEqual([400, "/summary"]);
  });

  it.each([
    ["4 KiB exactly", { note: "x".repeat(4_096 - 11) }],
    ["8 levels exactly", { a: { b: { c: { d: { e: { f: { g: { h: 1 } } } } } } } }],
  ])("a summary of %s: accepted", async (_name, value) => {
    expect((await beat(value)).status).toBe(200);
  });

  it("a form whose summary is not an object: 400; a broken multipart body: no server error", async () => {
    for (const text of ["x", "7", "[1]", '{"a":']) {
      const answer = await post(HEARTBEAT, new URLSearchParams({ summary: text }));
      expect([answer.status, answer.body.errors?.[0]?.pointer], text).toEqual([400, "/summary"]);
    }
    for (const body of ["", "--x", "nonsense", "--x\r\n\r\n\r\n--x--\r\n"]) {
      const answer = await post(HEARTBEAT, body === "" ? "\r\n" : body, "multipart/form-data; boundary=x");
      expect([200, 400], body).toContain(answer.status);
    }
    expect((await post(HEARTBEAT, "--x", "multipart/form-data")).status).toBe(400);
  });
});

describe("a path", () => {
  it.each([
    ["/nothing/", 404],
    ["/api/payments/v1/devices/me//", 404],
    ["/api/payments/v2/devices/me/", 404],
    ["/api/payments/v1/devices/ME/", 404],
    ["/api/payments/v1/devices/%6de/", 404],
    ["/api/cashier/v1/orders/0/", 404],
    ["/api/cashier/v1/orders/01/", 404],
    ["/api/cashier/v1/orders/-1/", 404],
    ["/api/cashier/v1/orders/1.5/", 404],
    ["/api/cashier/v1/orders/9999999999999999/", 404],
    ["/api/cashier/v1/orders/abc/", 404],
  ])("GET %s: %i as JSON", async (path, status) => {
    const answer = await send<Refused>(world.baseUrl, "GET", path);
    expect([answer.status, answer.body.code]).toEqual([status, "path_not_found"]);
  });

  it("a path accepts only its methods, and Allow names them", async () => {
    for (const method of ["GET", "PUT", "DELETE", "PATCH"]) {
      const answer = await send<Refused>(world.baseUrl, method, REPORT);
      expect([answer.status, answer.body.code, answer.headers.get("allow")], method).toEqual([
        405,
        "method_not_allowed",
        "POST, OPTIONS",
      ]);
    }
    const options = await send(world.baseUrl, "OPTIONS", `${DEVICES}me/`);
    expect([options.status, options.headers.get("allow")]).toEqual([204, "GET, HEAD, OPTIONS"]);
    const head = await send(world.baseUrl, "HEAD", `${DEVICES}me/`, { token: await companion() });
    expect([head.status, head.text]).toEqual([200, ""]);
    expect(Number(head.headers.get("content-length"))).toBeGreaterThan(100);
  });
});
