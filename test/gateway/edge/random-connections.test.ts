/**
 * Clients open, use and abort connections of every kind at random, while the server closes others to make room. The server
 * has objects that refer to memory of the HTTP library (`gateway/http/connections.ts`); a late use of such an object reads
 * freed memory. Here the C library overwrites freed memory, so that a late use ends the process. In the long form, of
 * `npm run soak`, each test lasts a minute (CONNECTIONS_MS).
 */

import { type ChildProcess, fork } from "node:child_process";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { describe, expect, it, vi } from "vitest";
import { HANGS } from "../../support/hangs.ts";

const FOR_MS = Number(process.env["CONNECTIONS_MS"] ?? 1_200);
const CLIENTS = 150;
const TLS_FOLDER = join(import.meta.dirname, "..", "tls");

const HOST = "Host: a\r\n";
const json = (length: number): string => `Content-Type: application/json\r\nContent-Length: ${length}\r\n`;
const close = (): string => (Math.random() < 0.3 ? "Connection: close\r\n" : "");
const get = (path: string): string => `GET ${path} HTTP/1.1\r\n${HOST}${close()}\r\n`;
const post = (path: string): string => `POST ${path} HTTP/1.1\r\n${HOST}${close()}${json(2)}\r\n{}`;
const REQUESTS: readonly (() => string)[] = [
  ...["/small/", "/file/", "/text/", "/later/", "/none/", "/nothing/"].map((path) => () => get(path)),
  ...["/small/", "/text/", "/later/", "/none/", "/nothing/"].map((path) => () => post(path)),
  () => `HEAD /file/ HTTP/1.1\r\n${HOST}\r\n`,
  () => `OPTIONS /small/ HTTP/1.1\r\n${HOST}\r\n`,
  () => `POST /small/ HTTP/1.1\r\n${HOST}${json(100)}\r\n{`,
  () => `POST /small/ HTTP/1.1\r\n${HOST}${json(99_999_999)}\r\n{`,
  () => `POST /small/ HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n2\r\n{}XX0\r\n\r\n`,
  () => `GET /small/ HTTP/1.1\r\n${HOST}${HOST}\r\n`,
  () => `GET /small/ HTTP/1.1\r\n${HOST}X: a\0b\r\n\r\n`,
  () => "GET /sm",
  () => "nonsense\r\n\r\n",
];

interface Counts {
  readonly open: number;
  readonly unsent: number;
  readonly bytes: number;
  readonly madeRoom: Readonly<Record<string, number>>;
}

async function startServer(environment: Record<string, string>): Promise<{ child: ChildProcess; port: number }> {
  const child = fork(join(import.meta.dirname, "bare-server-process.ts"), {
    env: {
      ...process.env,
      MALLOC_PERTURB_: "165",
      MAX_CONNECTIONS: "40",
      MAX_CONNECTIONS_PER_ADDRESS: "20",
      ...environment,
    },
  });
  const { port } = await nextMessage<{ port: number }>(child);
  return { child, port };
}

function nextMessage<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    child.once("message", (message) => resolve(message as T));
    child.once("exit", (code, signal) => reject(new Error(`The server ended with ${code ?? signal}.`)));
  });
}

async function countsOf(child: ChildProcess): Promise<Counts> {
  const counts = nextMessage<Counts>(child);
  child.send("count");
  return await counts;
}

const pick = <T>(from: readonly T[]): T => from[Math.floor(Math.random() * from.length)] as T;

/** Opens, uses and ends one connection after the other, until that time. */
async function misuse(open: () => Socket, untilMs: number): Promise<void> {
  while (performance.now() < untilMs) {
    const socket = open();
    socket.on("error", () => undefined);
    if (Math.random() < 0.8) socket.resume();
    for (let requests = Math.floor(Math.random() * 4); requests > 0; requests -= 1) {
      const count = Math.random() < 0.2 ? 3 : 1;
      if (socket.writable) socket.write(Array.from({ length: count }, () => pick(REQUESTS)()).join(""));
      await delay(Math.random() * 60);
    }
    await delay(Math.random() * 150);
    if (Math.random() < 0.5 && !("encrypted" in socket)) socket.resetAndDestroy();
    else socket.destroy();
  }
}

describe("connections that clients misuse at random", { timeout: FOR_MS + 120_000 }, () => {
  it.each([
    ["without TLS", {}],
    ["with TLS", { TLS_FOLDER }],
  ])("%s: the server keeps running, and no connection stays open in its counts", async (_name, environment) => {
    const { child, port } = await startServer(environment);
    try {
      const options = { port, host: "127.0.0.1" };
      const open = (): Socket => {
        const localAddress =
          process.platform === "linux" ? `127.0.0.${2 + Math.floor(Math.random() * 4)}` : "127.0.0.1";
        return "TLS_FOLDER" in environment
          ? connectTls({ ...options, rejectUnauthorized: false })
          : connect({ ...options, localAddress });
      };
      const untilMs = performance.now() + FOR_MS;
      await Promise.all(Array.from({ length: CLIENTS }, () => misuse(open, untilMs)));
      await vi.waitFor(
        async () => expect(await countsOf(child)).toMatchObject({ open: 0, unsent: 0, bytes: 0 }),
        HANGS,
      );
      const { madeRoom } = await countsOf(child);
      expect(Object.values(madeRoom).reduce((sum, count) => sum + count, 0)).toBeGreaterThan(20);
    } finally {
      child.disconnect();
    }
  });
});
