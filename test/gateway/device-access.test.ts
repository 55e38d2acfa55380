/** Access of devices: credentials, scopes, standing, kill switches, and the throttle of a credential. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LIMITS } from "../../gateway/limits.ts";
import type { StationCommand } from "../../machines/station/command.ts";
import type { StationDevice } from "../../machines/station/state.ts";
import { DEVICES } from "../support/devices.ts";
import { type Answer, type Refused, send } from "../support/http.ts";
import {
  COMPANION_SCOPES,
  DISPLAY_SCOPES,
  type GatewayWorld,
  startGatewayWorld,
  type TestStation,
} from "./gateway-world.ts";

const READS = ["GET me/", "GET display/", "GET assignment/"] as const;
const ALL = [...READS, "POST heartbeat/", "POST assignment/report/"] as const;
type Endpoint = (typeof ALL)[number];

let world: GatewayWorld;
let station: TestStation;
beforeAll(async () => {
  world = await startGatewayWorld();
  station = await world.openStation(1);
});
afterAll(() => world.stop());

const REPORT = { intent_id: 1, outcome: "reported_success" };

function ask<T = Refused>(endpoint: Endpoint, headers: Record<string, string> = {}): Promise<Answer<T>> {
  const [method, path] = endpoint.split(" ") as [string, string];
  const json = endpoint === "POST assignment/report/" ? REPORT : {};
  return send<T>(world.baseUrl, method, DEVICES + path, { headers, ...(method === "GET" ? {} : { json }) });
}

const bearer = (credential: string): Record<string, string> => ({ authorization: `Bearer ${credential}` });
const display = (): Promise<string> => world.credential(station.displayId, 1, DISPLAY_SCOPES);
const companion = (): Promise<string> => world.credential(station.companionId, 1, COMPANION_SCOPES);

describe("a device's credential", () => {
  it.each(ALL)("no credential at %s: 401 and a challenge", async (endpoint) => {
    for (const authorization of ["", "Basic ZGV2aWNlOnBhc3M=", "Bearer", "Bearer "]) {
      const answer = await ask(endpoint, authorization === "" ? {} : { authorization });
      expect([answer.status, answer.body.code], authorization).toEqual([401, "credential_missing"]);
      expect(answer.headers.get("www-authenticate")).toBe('Bearer realm="device-payments"');
    }
  });

  it.each(ALL)("an unknown credential at %s: 401", async (endpoint) => {
    for (const credential of ["nonsense", `dp_00_${"A".repeat(43)}`, "x".repeat(2_000)]) {
      const answer = await ask(endpoint, bearer(credential));
      expect([answer.status, answer.body.code]).toEqual([401, "credential_invalid"]);
      expect(answer.headers.get("www-authenticate")).toContain('error="invalid_token"');
    }
  });

  it("a valid credential: accepted with any case of the scheme", async () => {
    expect((await ask("GET me/", { authorization: `bEARER ${await display()}` })).status).toBe(200);
  });

  it("revoked: refused at once, and another credential of the device is accepted", async () => {
    const [revoked, other] = [await display(), await display()];
    expect((await ask("GET display/", bearer(revoked))).status).toBe(200);
    await world.revoke(revoked);
    expect((await ask("GET display/", bearer(revoked))).body.code).toBe("credential_invalid");
    expect((await ask("GET display/", bearer(other))).status).toBe(200);
  });

  it("a device that its station has revoked: 401, although the bucket still has the credential's entry", async () => {
    const other = await world.openStation(6);
    const credential = await world.credential(other.displayId, 6, DISPLAY_SCOPES);
    expect((await ask("GET display/", bearer(credential))).status).toBe(200);
    const device = other.state().devices.find(({ deviceId }) => deviceId === other.displayId) as StationDevice;
    await other.run({ type: "device_put", device: { ...device, status: "revoked", revision: 2 } });
    for (const endpoint of ["GET display/", "POST heartbeat/"] as const) {
      const answer = await ask(endpoint, bearer(credential));
      expect([answer.status, answer.body.code], endpoint).toEqual([401, "credential_invalid"]);
    }
  });

  it("a device that its station's replica does not have: 503, because the replica may be stale", async () => {
    const orphan = await world.credential(777, 1, DISPLAY_SCOPES);
    const stray = await world.credential(1, 999, DISPLAY_SCOPES);
    for (const credential of [orphan, stray]) {
      for (const endpoint of ["GET display/", "POST heartbeat/"] as const) {
        const answer = await ask(endpoint, bearer(credential));
        expect([answer.status, answer.body.code], endpoint).toEqual([503, "replica_stale"]);
      }
    }
  });

  it("an invalid entry in the bucket: `credential_invalid`", async () => {
    const credential = await world.credential(0, 1, DISPLAY_SCOPES);
    expect((await ask("GET display/", bearer(credential))).body.code).toBe("credential_invalid");
  });
});

describe("the scopes of a credential", () => {
  it.each([
    ["a display", display, ["GET assignment/", "POST assignment/report/"], ["GET me/", "GET display/"]],
    ["a companion", companion, ["GET display/"], ["GET me/", "GET assignment/"]],
  ] as const)("%s: may call only the endpoints of its kind", async (_name, make, denied, allowed) => {
    const credential = await make();
    for (const endpoint of denied) {
      const answer = await ask(endpoint, bearer(credential));
      expect([answer.status, answer.body.code], endpoint).toEqual([403, "scope_denied"]);
    }
    for (const endpoint of allowed) expect((await ask(endpoint, bearer(credential))).status, endpoint).toBe(200);
  });
});

describe("a blocked device", () => {
  const put = (status: "active" | "suspended" | "closed", revision: number): StationCommand => {
    const { organizationId, filialId, name, currency } = station.state();
    return {
      type: "station_put",
      stationId: 1,
      station: { organizationId, filialId, name, currency, status, revision },
    };
  };
  const putDevice = (status: "active" | "suspended", revision: number): StationCommand => {
    const { liveness: _, ...device } = station
      .state()
      .devices.find(({ deviceId }) => deviceId === station.companionId) as StationDevice;
    return { type: "device_put", device: { ...device, status, revision } };
  };
  const onAndOff = (key: string) => [() => world.setSwitch(key, true), () => world.setSwitch(key, false)] as const;

  it.each([
    ["device_suspended", () => station.run(putDevice("suspended", 2)), () => station.run(putDevice("active", 3))],
    ["station_suspended", () => station.run(put("suspended", 2)), () => station.run(put("active", 3))],
    ["device_frozen", ...onAndOff("device.12")],
    ["station_frozen", ...onAndOff("station.1")],
    ["organization_frozen", ...onAndOff("organization.1")],
    ["platform_frozen", ...onAndOff("platform")],
  ])("%s: me and heartbeat report it, other endpoints refuse the device with it", async (reason, block, unblock) => {
    const credential = bearer(await companion());
    await block();
    for (const endpoint of ["GET me/", "POST heartbeat/"] as const) {
      const answer = await ask<{ blocked_reason: string }>(endpoint, credential);
      expect([answer.status, answer.body.blocked_reason], endpoint).toEqual([200, reason]);
    }
    const answer = await ask("GET assignment/", credential);
    expect([answer.status, answer.body.code]).toEqual([403, reason]);
    // The station would store this report as evidence and refuse it. No host runs here, so the gateway refuses it.
    const askedAtMs = performance.now();
    const report = await ask("POST assignment/report/", credential);
    expect([report.status, report.body.code]).toEqual([403, reason]);
    expect(performance.now() - askedAtMs).toBeLessThan(LIMITS.blockedReportMs + 500);
    await unblock();
    expect((await ask("GET assignment/", credential)).status).toBe(200);
  });

  it("a blocked display: 403 instead of its view", async () => {
    const credential = bearer(await display());
    await world.setSwitch("platform", true);
    const answer = await ask("GET display/", { ...credential, "if-none-match": "*" });
    expect([answer.status, answer.body.code]).toEqual([403, "platform_frozen"]);
    await world.setSwitch("platform", false);
    expect((await ask("GET display/", credential)).status).toBe(200);
  });
});

describe("the throttle of a credential", () => {
  it("ten requests at once, then one a second, over all endpoints together", async () => {
    const [credential, other] = [bearer(await display()), bearer(await display())];
    const etag = (await ask("GET display/", credential)).headers.get("etag") as string;
    const rest = [
      ...Array.from({ length: 4 }, () => ask("GET me/", credential)),
      ...Array.from({ length: 4 }, () => ask("GET display/", { ...credential, "if-none-match": etag })),
      ask("GET assignment/", credential),
    ];
    const statuses = (await Promise.all(rest)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 429)).toEqual([]);
    for (const endpoint of ["GET display/", "POST heartbeat/"] as const) {
      const refused = await ask(endpoint, credential);
      expect([refused.status, refused.body.code], endpoint).toEqual([429, "throttled"]);
      expect(refused.headers.get("retry-after")).toBe("1");
      expect(refused.headers.get("ratelimit-policy")).toBe('"credential";q=10;w=10');
      expect(refused.headers.get("ratelimit")).toBe('"credential";r=0;t=1');
    }
    expect((await ask("GET display/", other)).status).toBe(200);
    await new Promise((resolve) => setTimeout(resolve, 1_050));
    expect((await ask("GET display/", credential)).status).toBe(200);
    expect((await ask("GET display/", credential)).status).toBe(429);
  });
});
