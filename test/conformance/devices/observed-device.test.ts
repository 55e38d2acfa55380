/** How the suite observes a device and judges its requests: without a service. */
import { request } from "node:http";
import { describe, expect, test } from "vitest";
import { enrollmentChecks, revocationChecks } from "../../../clients/conformance/devices/checks/enrollment.ts";
import { historyChecks } from "../../../clients/conformance/devices/checks/presence.ts";
import { DeviceWorld } from "../../../clients/conformance/devices/device-world.ts";
import { type Observed, Observer } from "../../../clients/conformance/devices/observer.ts";
import { newWire } from "../../../clients/conformance/http.ts";

test("a device that sends a chunked body: the observer refuses it as the gateway does", async () => {
  const observer = await Observer.start({ baseUrl: "http://127.0.0.1:9", host: "127.0.0.1", port: 0 });
  try {
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const headers = { "content-type": "application/json", "transfer-encoding": "chunked" };
      const url = `${observer.baseUrl}/api/payments/v1/devices/enroll/`;
      const sent = request(url, { method: "POST", headers }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      });
      sent.on("error", reject).end('{"code":"A"}');
    });
    expect(status).toBe(411);
    expect(observer.requests.map(({ answer }) => answer?.json["code"])).toEqual(["length_required"]);
  } finally {
    await observer.stop();
  }
});

describe("a device that still has the credential of an earlier run", () => {
  const CODE = "7K3QX-9M2TB";
  const AGO_MS = 60_000;

  function observed(operation: string, status: number, credential?: string, agoMs = 0): Observed {
    const atMs = performance.now() - agoMs;
    const json = status === 201 ? { credential: "new" } : {};
    return {
      method: "POST",
      operation,
      headers: credential === undefined ? {} : { authorization: `Bearer ${credential}` },
      text: "",
      json: operation === "enroll/" ? { code: CODE } : {},
      atMs,
      answer: { status, etag: "", json, atMs },
      served: { status, etag: "", json, atMs },
    };
  }

  /** Before its enrollment the device sends one heartbeat with the ended credential; its claim is throttled once. */
  function secondRun() {
    const requests = [observed("heartbeat/", 401, "ended", AGO_MS)];
    const device = {
      stepMs: 500,
      async enroll() {
        requests.push(observed("enroll/", 429), observed("enroll/", 503), observed("enroll/", 201));
        requests.push(observed("heartbeat/", 200, "new"), observed("assignment/", 200, "new"));
      },
    };
    const sandbox = { companionCode: CODE, companionId: 1 };
    const owner = {
      async change() {
        requests.push(observed("assignment/", 401, "new"));
        return { status: 200, headers: new Headers(), text: "", body: {} };
      },
    };
    const wire = newWire("http://127.0.0.1:9", AbortSignal.timeout(20_000));
    const world = { wire, sandbox, owner, credentials: [] };
    const parts = { world, device, observer: { requests }, kind: "companion" } as unknown as DeviceWorld;
    // The checks of what the device does not do need no time here.
    return Object.assign(new DeviceWorld(parts), { watch: async () => undefined });
  }

  test("it enrolls again: passes the checks of its enrollment, its heartbeats and the end of its credential", async () => {
    const world = secondRun();
    for (const { id, run } of [
      ...enrollmentChecks.slice(0, 2),
      ...revocationChecks.slice(0, 1),
      ...historyChecks.slice(0, 1),
    ])
      await expect(run(world), id).resolves.toBeUndefined();
  });

  test("it continues with the ended credential: fails the check of its credential", async () => {
    const world = secondRun();
    const [claims, uses] = enrollmentChecks;
    await claims?.run(world);
    await expect(uses?.run(world)).resolves.toBeUndefined();
    (world.observer.requests as Observed[]).push(observed("heartbeat/", 401, "ended"));
    await expect(uses?.run(world)).rejects.toThrow(/Authorization/);
  });
});
