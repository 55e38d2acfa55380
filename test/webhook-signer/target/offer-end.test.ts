/** A delivery that ends before it is sent, such as an offer: no byte of its request is written after the end. */
import { afterAll, afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { Sender } from "../../../services/webhook-signer/http/send-result.ts";
import { sendOnce } from "../../../services/webhook-signer/sending/attempt.ts";
import { startNameServer } from "../../support/name-server.ts";
import {
  answering,
  OK,
  type RawTarget,
  removeFolder,
  senderWith,
  sendHere,
  startTarget,
  startTlsTarget,
} from "./raw-target.ts";
import { startSlowWay } from "./slow-way.ts";

afterAll(removeFolder);

const TOO_LATE = { name: "EndedBeforeSending" };
let sender: Sender;
beforeEach(() => {
  sender = senderWith();
});
afterEach(() => sender.close());

/** A target whose handshake takes this long. */
async function startSlowTlsTarget(handshakeMs: number): Promise<RawTarget> {
  const target = await startTlsTarget(answering(OK));
  const way = await startSlowWay(target.port, handshakeMs);
  onTestFinished(async () => {
    await way.close();
    await target.close();
  });
  return { ...target, port: way.port };
}

const within = (ms: number): number => performance.now() + ms;
const pause = (ms: number): Promise<void> => new Promise((go) => setTimeout(go, ms));

describe("a request that ends", () => {
  test("during the TLS handshake: not sent, and the sender does not wait for the handshake", async () => {
    const { port, received } = await startSlowTlsTarget(2_500);
    const startedAtMs = performance.now();
    const sending = sendHere(sender, `https://localhost:${port}/`, undefined, within(200));
    await expect(sending).rejects.toMatchObject(TOO_LATE);
    expect(performance.now() - startedAtMs).toBeLessThan(2_200);
    await pause(2_800);
    expect(received.join("")).toBe("");
  });

  test("after a quick TLS handshake: sent", async () => {
    const { port, received } = await startSlowTlsTarget(100);
    const result = await sendHere(sender, `https://localhost:${port}/`, undefined, within(5_000));
    expect(result).toMatchObject({ error: null, status: 200 });
    expect(received.join("")).toContain("POST / ");
  });

  test("while its target answers: not cut off, because it has been sent", async () => {
    const target = await startTarget((socket, soFar) => {
      if (soFar.endsWith("{}")) setTimeout(() => socket.write(OK), 400);
    });
    onTestFinished(() => target.close());
    const url = `http://127.0.0.1:${target.port}/`;
    expect(await sendHere(sender, url, undefined, within(200))).toMatchObject({ error: null, status: 200 });
  });

  test("during the look-up of its host: not sent", async () => {
    const names = await startNameServer();
    onTestFinished(() => names.close());
    names.answerWith(() => "silence");
    const asking = senderWith({ dnsServers: [names.address] });
    const request = { url: "https://hooks.example.com/", headers: {}, body: "{}", loopback: "refused" } as const;
    await expect(asking.send({ ...request, endsAtMs: within(100) })).rejects.toMatchObject(TOO_LATE);
    await asking.close();
  });

  test("before it begins: opens no connection, and uses none that is open", async () => {
    const target = await startTarget(answering(OK));
    onTestFinished(() => target.close());
    const url = `http://127.0.0.1:${target.port}/`;
    await expect(sendHere(sender, url, undefined, within(0))).rejects.toMatchObject(TOO_LATE);
    expect(target.sockets).toHaveLength(0);
    await sendHere(sender, url);
    await expect(sendHere(sender, url, undefined, within(0))).rejects.toMatchObject(TOO_LATE);
    expect(target.received.join("").split("POST")).toHaveLength(2);
  });
});

test("a delivery that another process holds once the connection is open: not sent", async () => {
  const { port, received } = await startSlowTlsTarget(300);
  const deps = { sender, allowLoopback: true, clock: { nowMs: Date.now }, log: { error: () => undefined } };
  const target = { url: `https://localhost:${port}/`, mode: "test", secrets: ["whsec_x"] } as const;
  const message = { body: "{}", signal: new AbortController().signal };
  let isOurs = true;
  const sending = sendOnce(deps, target, { ...message, maySend: () => isOurs });
  isOurs = false;
  expect(await sending).toBeUndefined();
  expect(received.join("")).toBe("");
  isOurs = true;
  expect(await sendOnce(deps, target, { ...message, maySend: () => isOurs })).toMatchObject({ error: null });
});

test("a request that was written once and ends before it is written again: an attempt", async () => {
  const requests = (soFar: string): number => soFar.split("POST").length - 1;
  const target = await startTlsTarget((socket, soFar) => {
    if (requests(soFar) > 1) socket.destroy();
    else answering(OK)(socket, soFar);
  });
  onTestFinished(() => target.close());
  const url = `https://localhost:${target.port}/`;
  const request = { url, headers: {}, body: "{}", loopback: "allowed" } as const;
  const closed = { error: "connection_closed", status: null, address: "127.0.0.1" };
  expect(await sender.send(request)).toMatchObject({ error: null });
  let asked = 0;
  expect(await sender.send({ ...request, maySend: () => (asked += 1) === 1 })).toMatchObject(closed);
  expect([requests(target.received.join("")), asked]).toEqual([2, 2]);
});

test("a delivery that ends before it is sent: no attempt, and no fault in the log", async () => {
  const { port, received } = await startSlowTlsTarget(600);
  const faults: unknown[] = [];
  const log = { error: (...fault: unknown[]) => void faults.push(fault) };
  const deps = { sender, allowLoopback: true, clock: { nowMs: Date.now }, log };
  const target = { url: `https://localhost:${port}/`, mode: "test", secrets: ["whsec_x"] } as const;
  const message = { body: "{}", signal: new AbortController().signal };
  expect(await sendOnce(deps, target, { ...message, endsAtMs: within(150) })).toBeUndefined();
  expect(received.join("")).toBe("");
  expect(await sendOnce(deps, target, { ...message, endsAtMs: null })).toMatchObject({ error: null });
  expect(faults).toEqual([]);
});
