/** How the sender handles every kind of answer of a target, on loopback over real TLS. */
import { createSecureContext } from "node:tls";
import { gzipSync } from "node:zlib";
import { afterAll, afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { openConnection } from "../../../services/webhook-signer/http/open-connection.ts";
import type { Sender } from "../../../services/webhook-signer/http/send-result.ts";
import { TARGET_LIMITS } from "../../../services/webhook-signer/limits.ts";
import { isPublicAddress } from "../../../services/webhook-signer/target/address-rule.ts";
import { eventually } from "../../support/wait-for.ts";
import {
  answering,
  OK,
  type OnBytes,
  type RawTarget,
  removeFolder,
  senderWith,
  sendHere,
  startTarget,
  startTlsTarget,
} from "./raw-target.ts";

afterAll(removeFolder);

let sender: Sender;
beforeEach(() => {
  sender = senderWith();
});
afterEach(() => sender.close());

async function target(onBytes: OnBytes): Promise<RawTarget & { readonly url: string }> {
  const started = await startTlsTarget(onBytes);
  onTestFinished(() => started.close());
  return { ...started, url: `https://localhost:${started.port}/hook?a=b` };
}

const answerOf = (status: string, headers: string[] = [], body = ""): string =>
  [`HTTP/1.1 ${status}`, `content-length: ${Buffer.byteLength(body, "latin1")}`, ...headers, "", body].join("\r\n");

describe("sender: the request", () => {
  test("it is a POST over HTTP/1.1 with the caller's body, and it asks for an answer without compression", async () => {
    const { url, received, port } = await target(answering(OK));
    const result = await sendHere(sender, url);
    expect(result).toMatchObject({ error: null, status: 200, responseBody: "ok", truncated: false, dnsMs: null });
    expect(result.address).toBe("127.0.0.1");
    for (const ms of [result.connectMs, result.tlsMs, result.firstByteMs, result.totalMs])
      expect(ms).toBeGreaterThan(0);
    const [head = "", body] = (received[0] ?? "").split("\r\n\r\n");
    expect(head.split("\r\n")[0]).toBe("POST /hook?a=b HTTP/1.1");
    expect(head).toContain(`host: localhost:${port}`);
    expect(head).toContain("accept-encoding: identity");
    expect(head).toContain("content-length: 2");
    expect(body).toBe("{}");
  });

  test("http on loopback: the sender sends only where the call allows loopback", async () => {
    const plain = await startTarget(answering(OK));
    onTestFinished(() => plain.close());
    const url = `http://127.0.0.1:${plain.port}/`;
    expect(await sendHere(sender, url)).toMatchObject({ error: null, tlsMs: null });
    expect(await sender.send({ url, headers: {}, body: "{}", loopback: "refused" })).toMatchObject({
      error: "target_refused",
      address: null,
      totalMs: null,
    });
    expect(plain.sockets.length).toBe(1);
  });

  test("proxies in the environment: the sender uses none of them", async () => {
    const proxy = await startTarget(answering(OK));
    onTestFinished(() => proxy.close());
    const names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
    const before = { ...process.env };
    onTestFinished(() => {
      process.env = before;
    });
    for (const name of names) process.env[name] = `http://127.0.0.1:${proxy.port}`;
    Object.assign(process.env, { NODE_USE_ENV_PROXY: "1", NO_PROXY: "", no_proxy: "" });
    const { url } = await target(answering(OK));
    const other = senderWith();
    expect(await sendHere(other, url)).toMatchObject({ error: null });
    await other.close();
    expect(proxy.sockets.length).toBe(0);
  });
});

describe("sender: the answer", () => {
  test.each(["200 OK", "201 Created", "204 No Content", "299 Fine"])("%s: success", async (status) => {
    const { url } = await target(
      answering(`HTTP/1.1 ${status}\r\n${status.startsWith("204") ? "" : "content-length: 0\r\n"}\r\n`),
    );
    expect(await sendHere(sender, url)).toMatchObject({ error: null, status: Number(status.slice(0, 3)) });
  });

  test.each([300, 301, 302, 303, 304, 307, 308])(
    "%i: a failure, and the sender does not follow the location",
    async (status) => {
      const there = await target(answering(OK));
      const body =
        status === 304
          ? `HTTP/1.1 304 x\r\nlocation: ${there.url}\r\n\r\n`
          : answerOf(`${status} x`, [`location: ${there.url}`]);
      const here = await target(answering(body));
      expect(await sendHere(sender, here.url)).toMatchObject({ error: "redirected", status });
      expect([here.sockets.length, there.sockets.length]).toEqual([1, 0]);
    },
  );

  test.each([400, 404, 410, 429, 500, 503])("%i: a failure with its status and body", async (status) => {
    const { url } = await target(answering(answerOf(`${status} x`, [], "no")));
    expect(await sendHere(sender, url)).toMatchObject({ error: "status_not_success", status, responseBody: "no" });
  });

  test.each([
    ["retry-after: 7", 7_000],
    ["retry-after: 0", 0],
    ["retry-after: 86400", 3_600_000],
    ["retry-after: Fri, 31 Dec 2049 23:59:59 GMT", 3_600_000],
    ["retry-after: Fri, 31 Dec 1999 23:59:59 GMT", 0],
    ["retry-after: -1", null],
    ["retry-after: soon", null],
    ["retry-after: 1e3", null],
    ["x: y", null],
  ])("the header «%s»: retryAfterMs is %s", async (header, retryAfterMs) => {
    const { url } = await target(answering(answerOf("503 x", [header])));
    expect(await sendHere(sender, url)).toMatchObject({ retryAfterMs });
  });

  test("a body that does not end: the sender reads 16 KiB and destroys the connection", async () => {
    let written = 0;
    const { url, sockets } = await target((socket, soFar) => {
      if (!soFar.endsWith("{}")) return;
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      const more = (): void => {
        while (!socket.destroyed && written < 1e8 && socket.write("a".repeat(65_536))) written += 65_536;
      };
      socket.on("drain", more);
      more();
    });
    const result = await sendHere(sender, url);
    expect(result).toMatchObject({ error: null, status: 200, truncated: true });
    expect(result.responseBody).toBe("a".repeat(TARGET_LIMITS.excerptBytes));
    await eventually(() => sockets[0]?.destroyed === true);
    expect(written).toBeLessThan(1e8);
  });

  test("a body of exactly 16 KiB: it is complete, and the connection stays open", async () => {
    const { url, sockets } = await target(answering(answerOf("200 OK", [], "a".repeat(TARGET_LIMITS.answerBytes))));
    expect(await sendHere(sender, url)).toMatchObject({ error: null, truncated: false });
    expect(await sendHere(sender, url)).toMatchObject({ error: null, connectMs: null });
    expect(sockets.length).toBe(1);
  });

  test("a compressed body: the sender does not decompress it", async () => {
    const packed = gzipSync("a".repeat(10_000_000)).toString("latin1");
    const answer = answerOf("200 OK", ["content-encoding: gzip"], packed);
    const { url } = await target((socket, soFar) => {
      if (soFar.endsWith("{}")) socket.write(answer, "latin1");
    });
    expect(await sendHere(sender, url)).toMatchObject({ error: null, responseBody: "", truncated: false });
  });

  test("a body that PostgreSQL cannot store: the sender makes it a text that PostgreSQL can store", async () => {
    const bytes = Buffer.from([0x61, 0, 0x1b, 0x5b, 0xff, 0x0a, 0xc3, 0xa4, 0xe2, 0x80, 0xae]).toString("latin1");
    const { url } = await target((socket, soFar) => {
      if (soFar.endsWith("{}")) socket.write(answerOf("200 OK", [], bytes + "\xff".repeat(1_024)), "latin1");
    });
    const { responseBody } = await sendHere(sender, url);
    expect(responseBody.startsWith("a  [\ufffd\nä \ufffd")).toBe(true);
    expect(Buffer.byteLength(responseBody)).toBeLessThanOrEqual(TARGET_LIMITS.excerptBytes);
  });

  test.each([
    [
      "a 100 that the request did not ask for",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    ],
    ["a 101", "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n"],
    ["a text that is not HTTP", "hello\r\n\r\n"],
    ["two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"],
    ["a head longer than 16 KiB", `HTTP/1.1 200 OK\r\nx: ${"a".repeat(20_000)}\r\n\r\n`],
    ["informational answers without end", "HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n".repeat(20_000)],
    ["a chunk header without end", `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;${"a".repeat(600_000)}`],
  ])("%s: answer_invalid", async (_what, answer) => {
    const { url, sockets } = await target(answering(answer));
    expect(await sendHere(sender, url)).toMatchObject({ error: "answer_invalid" });
    await eventually(() => sockets[0]?.destroyed === true);
  });

  test("an answer after a 103: it counts like every other one", async () => {
    const { url } = await target(answering(`HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n${OK}`));
    expect(await sendHere(sender, url)).toMatchObject({ error: null, status: 200 });
  });

  test.each([
    ["nothing", ""],
    ["half a head", "HTTP/1.1 200"],
  ])("the target closes after %s: the attempt fails, and the sender does not repeat it", async (_what, bytes) => {
    const { url, sockets } = await target((socket, soFar) => {
      if (soFar.endsWith("{}")) socket.end(bytes);
    });
    const { error } = await sendHere(sender, url);
    expect(bytes === "" ? ["connection_closed"] : ["connection_closed", "answer_invalid"]).toContain(error);
    expect(sockets.length).toBe(1);
  });
});

describe("sender: time limits", () => {
  const drip: OnBytes = (socket, soFar) => {
    if (!soFar.endsWith("{}")) return;
    socket.write("HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n");
    const timer = setInterval(() => socket.write("a"), 50);
    socket.on("close", () => clearInterval(timer));
  };

  test.each([
    ["a limit that is set", 400],
    ["the default limit", TARGET_LIMITS.attemptMs],
  ])("a body that arrives byte by byte, %s: the attempt ends after %i ms", async (_what, attemptMs) => {
    const { url, sockets } = await target(drip);
    const limited = senderWith(attemptMs === TARGET_LIMITS.attemptMs ? {} : { times: { attemptMs } });
    const result = await sendHere(limited, url);
    expect(result).toMatchObject({ error: "timed_out", status: 200 });
    expect(result.totalMs).toBeGreaterThan(attemptMs - 20);
    expect(result.totalMs).toBeLessThan(attemptMs + 500);
    await eventually(() => sockets[0]?.destroyed === true);
    await limited.close();
  });

  test("a TLS handshake without an answer: the attempt ends after connectMs", async () => {
    const silent = await startTarget(() => undefined);
    onTestFinished(() => silent.close());
    const result = await sendHere(sender, `https://localhost:${silent.port}/`);
    expect(result).toMatchObject({ error: "timed_out", tlsMs: null, firstByteMs: null, address: "127.0.0.1" });
    expect(result.totalMs).toBeGreaterThan(TARGET_LIMITS.connectMs - 20);
    expect(result.totalMs).toBeLessThan(TARGET_LIMITS.connectMs + 500);
  });

  test("the caller aborts: the attempt rejects with the caller's reason", async () => {
    const { url, sockets } = await target(() => undefined);
    const controller = new AbortController();
    const sending = sendHere(sender, url, controller.signal);
    await eventually(() => sockets.length === 1);
    const gone = new Error("gone");
    controller.abort(gone);
    await expect(sending).rejects.toBe(gone);
    await eventually(() => sockets[0]?.destroyed === true);
  });

  test("the sender is closed: attempts under way and later ones reject", async () => {
    const { url, sockets } = await target(() => undefined);
    const sending = sendHere(sender, url);
    await eventually(() => sockets.length === 1);
    const rejection = expect(sending).rejects.toThrow("The sender is closed.");
    await sender.close();
    await rejection;
    await expect(sendHere(sender, url)).rejects.toThrow("The sender is closed.");
    await eventually(() => sockets[0]?.destroyed === true);
  });
});

describe("sender: connections", () => {
  test("a connection is used again, for one request at a time", async () => {
    const { url, sockets } = await target(answering(OK));
    for (let turn = 0; turn < 5; turn += 1) expect((await sendHere(sender, url)).error).toBe(null);
    expect(sockets.length).toBe(1);
    const results = await Promise.all(Array.from({ length: 4 }, () => sendHere(sender, url)));
    expect(results.map(({ error }) => error)).toEqual([null, null, null, null]);
    expect(sockets.length).toBe(4);
  });

  test("the target has closed an idle connection: the sender opens another one, and the attempt succeeds", async () => {
    const { url, sockets } = await target((socket, soFar) => {
      if (soFar.split("POST").length > 2) socket.destroy();
      else answering(OK)(socket, soFar);
    });
    expect(await sendHere(sender, url)).toMatchObject({ error: null });
    expect(await sendHere(sender, url)).toMatchObject({ error: null, connectMs: expect.any(Number) });
    expect(sockets.length).toBe(2);
  });

  test("a port without a server: connect_failed", async () => {
    const started = await startTlsTarget(answering(OK));
    const url = `https://127.0.0.1:${started.port}/`;
    await started.close();
    expect(await sendHere(sender, url)).toMatchObject({ error: "connect_failed", connectMs: null });
  });
});

test("sender: 60 attempts with one signal cause no warning about listeners", async () => {
  const { url } = await target(answering(OK));
  const warnings: unknown[] = [];
  const onWarning = (warning: unknown): unknown => warnings.push(warning);
  process.on("warning", onWarning);
  const { signal } = new AbortController();
  await Promise.all(Array.from({ length: 60 }, () => sendHere(sender, url, signal)));
  await new Promise((go) => setTimeout(go, 20));
  process.off("warning", onWarning);
  expect(warnings).toEqual([]);
});

test.each([true, false])("a private address that passed the first check gets no byte (TLS: %s)", async (isSecure) => {
  const settings = { secureContext: createSecureContext(), connectMs: 1_000 };
  const inside = await startTarget(() => undefined);
  onTestFinished(() => inside.close());
  const times = { address: null, connectMs: null, tlsMs: null };
  const found = { host: "hooks.example.com", port: inside.port, isSecure, addresses: ["127.0.0.1"] };
  const allows = (_host: string, address: string): boolean => isPublicAddress(address);
  const opening = openConnection(found, { ...settings, allows }, times, new AbortController().signal);
  await expect(opening).rejects.toMatchObject({ error: "target_refused" });
  expect(times).toEqual({ address: null, connectMs: null, tlsMs: null });
  await expect.poll(() => inside.sockets.every((socket) => socket.destroyed)).toBe(true);
  expect(inside.received.join("")).toBe("");
});
