/** The whole system with a separate PostgreSQL, and as many stations as a test needs, each with two devices. */
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import { type ApiClient, apiClient, type Request } from "../support/api-client.ts";
import { DEVICES } from "../support/devices.ts";
import { type Answer, send } from "../support/http.ts";
import { logIn, type Person } from "../support/people.ts";
import { startSystem, type TestSystem } from "../support/system.ts";

/** The gateway takes each request's address from the test, so that the throttle of addresses counts many addresses. */
export const BEHIND_PROXY = { TRUSTED_PROXIES: "127.0.0.1" };
const CODES_PER_ADDRESS = 8;
/** Longer than any test. */
const LEASE_SECONDS = 3_600;
/** The longest time that a busy machine needs to make the world of a test. */
const SERVED_MS = 60_000;

export interface ChaosStation {
  readonly stationId: number;
  /** `stations/<id>`, the station's path in the people's APIs. */
  readonly path: string;
  readonly companion: ApiClient;
  readonly companionId: number;
  readonly display: ApiClient;
}

export interface ChaosWorld {
  readonly system: TestSystem;
  readonly owner: Person;
  readonly cashier: Person;
  readonly stations: readonly ChaosStation[];
}

/** The system and its people, without stations yet. */
export type ChaosPeople = Omit<ChaosWorld, "stations">;

/** The system in which stations are opened, and the people who open them. */
export interface StationMakers {
  readonly system: Pick<TestSystem, "baseUrl" | "sandbox">;
  readonly owner: ApiClient;
  readonly cashier: ApiClient;
}

/** Starts the world. The cashier holds every station's lease, and every companion has sent a heartbeat. */
export async function startChaosWorld(stationCount: number): Promise<ChaosWorld> {
  const people = await startChaosSystem();
  return { ...people, stations: await addStations(people, stationCount) };
}

export async function startChaosSystem(): Promise<ChaosPeople> {
  const system = await startSystem({ ownPostgres: true, environment: BEHIND_PROXY });
  const owner = await logIn(system.baseUrl, "backoffice", system.owner);
  const cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  return { system, owner, cashier };
}

/** Opens stations, each with its two devices. */
export async function addStations({ system, owner, cashier }: StationMakers, count: number): Promise<ChaosStation[]> {
  const stations: ChaosStation[] = [];
  for (let index = 0; index < count; index += 1) {
    const body = { filial_id: system.sandbox.filialId, name: `Counter ${index}`, currency: "EUR" };
    const station = await post<{ station_id: number }>(owner, "stations/", { body, key: randomUUID() });
    const { station_id: stationId } = station;
    const [companion, display] = await Promise.all([
      enroll({ system, owner, stationId, kind: "smart_pos_companion", nth: 2 * index }),
      enroll({ system, owner, stationId, kind: "customer_display", nth: 2 * index + 1 }),
    ]);
    const path = `stations/${stationId}`;
    await post(cashier, `${path}/lease/`, { body: { lifetime_seconds: LEASE_SECONDS } });
    await post(companion.client, "heartbeat/", { body: {} });
    stations.push({
      stationId,
      path,
      companion: companion.client,
      companionId: companion.deviceId,
      display: display.client,
    });
  }
  return stations;
}

/** Sends a request before the faults. On a busy machine, it may get a 503; it is repeated after `Retry-After`. */
async function served<T>(what: string, ask: () => Promise<Answer<T>>): Promise<T> {
  const repeatUntilMs = performance.now() + SERVED_MS;
  for (;;) {
    const answer = await ask();
    if (answer.status !== 503 || performance.now() > repeatUntilMs) {
      expect(answer.status, `${what} answered ${answer.text}`).toBeLessThan(300);
      return answer.body;
    }
    await delay(1_000 * Number(answer.headers.get("retry-after") ?? 1));
  }
}

const post = <T = unknown>(client: ApiClient, path: string, request: Request): Promise<T> =>
  served(path, () => client.call<T>("POST", path, request));

/** An address that no other client has, in a network reserved for examples. */
export function exampleAddress(nth: number): string {
  return `198.18.${Math.floor(nth / 250) % 250}.${1 + (nth % 250)}`;
}

/** Enrolls devices of one kind at a station. `nth` is the number of earlier enrollments in this world. */
export async function addDevices(
  makers: Omit<StationMakers, "cashier" | "system"> & { readonly system: Pick<TestSystem, "baseUrl"> },
  wanted: { readonly stationId: number; readonly kind: string; readonly count: number; readonly nth: number },
): Promise<{ client: ApiClient; deviceId: number }[]> {
  const { stationId, kind, count, nth } = wanted;
  const devices: { client: ApiClient; deviceId: number }[] = [];
  for (let index = 0; index < count; index += 1) {
    devices.push(await enroll({ ...makers, stationId, kind, nth: nth + index }));
  }
  return devices;
}

async function enroll(request: {
  readonly system: Pick<TestSystem, "baseUrl">;
  readonly owner: ApiClient;
  readonly stationId: number;
  readonly kind: string;
  readonly nth: number;
}): Promise<{ client: ApiClient; deviceId: number }> {
  const { system, owner, stationId, kind, nth } = request;
  const device = await post<{ device_id: number }>(owner, "devices/", {
    body: { station_id: stationId, name: kind, kind },
    key: randomUUID(),
  });
  const headers = { "x-forwarded-for": exampleAddress(Math.floor(nth / CODES_PER_ADDRESS)) };
  // Each attempt needs a new code. After a 503, the code before may be claimed, and its credential was shown only once.
  const { credential } = await served("the claim of a code", async () => {
    const { code } = await post<{ code: string }>(owner, `devices/${device.device_id}/enrollment-codes/`, { body: {} });
    return await send<{ credential: string }>(system.baseUrl, "POST", `${DEVICES}enroll/`, { json: { code }, headers });
  });
  return { client: apiClient(system.baseUrl + DEVICES, credential), deviceId: device.device_id };
}
