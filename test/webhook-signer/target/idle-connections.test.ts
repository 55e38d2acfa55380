/** How long connections stay open for the next delivery, and how many. */
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import {
  type Connection,
  createConnection,
  createIdleConnections,
} from "../../../services/webhook-signer/http/connections.ts";
import type { SenderSettings } from "../../../services/webhook-signer/http/sender.ts";
import { TARGET_LIMITS } from "../../../services/webhook-signer/limits.ts";
import { answering, OK, type RawTarget, removeFolder, senderWith, sendHere, startTarget } from "./raw-target.ts";

afterAll(removeFolder);

const pause = (ms: number): Promise<void> => new Promise((go) => setTimeout(go, ms));

async function target(): Promise<RawTarget & { readonly url: string }> {
  const started = await startTarget(answering(OK));
  onTestFinished(() => started.close());
  return { ...started, url: `http://127.0.0.1:${started.port}/` };
}

function sending(times: NonNullable<SenderSettings["times"]>) {
  const sender = senderWith({ times });
  onTestFinished(() => sender.close());
  return (url: string) => sendHere(sender, url);
}

describe("an open connection", () => {
  test("waits four seconds for the next delivery, and is used for thirty at most", () => {
    expect(TARGET_LIMITS).toMatchObject({ idleMs: 4_000, connectionMs: 30_000 });
  });

  test("without a request: closes after its idle time", async () => {
    const { url, sockets } = await target();
    const send = sending({ idleMs: 1_000 });
    expect(await send(url)).toMatchObject({ error: null });
    await pause(150);
    const usedAtMs = performance.now();
    expect(await send(url)).toMatchObject({ error: null, connectMs: null });
    const [socket] = sockets;
    const closed = once(socket as NonNullable<typeof socket>, "close");
    await closed;
    // Counted from its last use.
    expect(performance.now() - usedAtMs).toBeGreaterThan(980);
    expect(sockets).toHaveLength(1);
    expect((await send(url)).connectMs).not.toBe(null);
  });

  test("too old: no longer used, however busy it was", async () => {
    const { url, sockets } = await target();
    const send = sending({ connectionMs: 2_000, idleMs: 30_000 });
    const startedAtMs = performance.now();
    let connections = 0;
    while (performance.now() - startedAtMs < 800) {
      const { error, connectMs } = await send(url);
      expect(error).toBe(null);
      connections += connectMs === null ? 0 : 1;
      await pause(40);
    }
    expect(connections).toBe(1);
    await pause(2_100 - (performance.now() - startedAtMs));
    // It was young enough when it was put back, and became too old while it waited.
    expect((await send(url)).connectMs).not.toBe(null);
    expect(sockets).toHaveLength(2);
    await expect.poll(() => sockets[0]?.destroyed).toBe(true);
  });

  test("too old during its use: not kept", async () => {
    const slow = await startTarget((socket, soFar) => {
      if (soFar.endsWith("{}")) setTimeout(() => socket.write(OK), 300);
    });
    onTestFinished(() => slow.close());
    const send = sending({ connectionMs: 200, idleMs: 5_000 });
    expect(await send(`http://127.0.0.1:${slow.port}/`)).toMatchObject({ error: null });
    await expect.poll(() => slow.sockets[0]?.destroyed).toBe(true);
  });
});

describe("idle connections", () => {
  async function open({ port }: RawTarget, name: string): Promise<Connection> {
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    const connection = createConnection(`http://${name}`, socket, { idleMs: 5_000, onClosed: () => undefined });
    onTestFinished(() => connection.destroy());
    return connection;
  }

  test("at most 256 in all and sixteen for one target are kept", () => {
    expect(TARGET_LIMITS).toMatchObject({ idleConnections: 256, idleConnectionsPerTarget: 16 });
  });

  test("too many for one target: the longest unused one is closed; the one used last is taken first", async () => {
    const here = await target();
    const idle = createIdleConnections({ idleConnectionsPerTarget: 2 });
    const [first, second, third] = await Promise.all([open(here, "a"), open(here, "a"), open(here, "a")]);
    for (const connection of [first, second, third]) idle.put(connection);
    expect([first.isAlive, second.isAlive, third.isAlive, idle.count]).toEqual([false, true, true, 2]);
    expect(idle.take("http://b")).toBeUndefined();
    expect([idle.take("http://a"), idle.take("http://a"), idle.take("http://a")]).toEqual([third, second, undefined]);
    expect(idle.count).toBe(0);
  });

  test("too many in all: the longest unused one of any target is closed", async () => {
    const here = await target();
    const idle = createIdleConnections({ idleConnections: 2 });
    const [first, second, third] = await Promise.all([open(here, "a"), open(here, "b"), open(here, "c")]);
    for (const connection of [first, second, third]) idle.put(connection);
    expect([first.isAlive, second.isAlive, third.isAlive, idle.count]).toEqual([false, true, true, 2]);
    idle.close();
    expect([second.isAlive, third.isAlive, idle.count]).toEqual([false, false, 0]);
  });
});
