/**
 * A whole system on a disk with little free space: first it refuses requests that can wait. Then no collection begins, and
 * running ones are completed.
 */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OPENAPI_FILE } from "../../../gateway/api/meta/pages.ts";
import { WAITING_OPERATIONS } from "../../../gateway/http/documents/error-replies.ts";
import { routes } from "../../../gateway/routes.ts";
import { enrollDevice } from "../../support/devices.ts";
import { addFleet } from "../../support/fleets.ts";
import { send } from "../../support/http.ts";
import { logIn, newOrder, openTill, type Person } from "../../support/people.ts";
import { mountSmallDisk } from "../../support/small-disk.ts";
import { startSystem, type TestSystem } from "../../support/system.ts";

const MEGABYTE = 1_024 ** 2;
/** The reserve begins below 8 MB of free space; the disk counts as full below 2 MB. */
const disk = mountSmallDisk("storage-low", 32);
const PLATFORM_KEY = "the platform key of this test, long".replaceAll(" ", "-");
const ENVIRONMENT = { DISK_FOLDER: disk.path, DISK_RESERVE_MB: "8", PLATFORM_KEY };
const COLLECTIONS = ["cashier_open_order", "cashier_create_intent"];
/** Each process measures the disk once a second. */
const WAIT = { timeout: 10_000, interval: 100 };

let system: TestSystem;
let owner: Person;
let cashier: Person;
let fleetCredential: string;
let station: string;

beforeAll(async () => {
  system = await startSystem({ environment: ENVIRONMENT, webhookSigner: true });
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  ({ cashier, station } = await openTill(system));
  ({ credential: fleetCredential } = await addFleet(system.baseUrl, owner, system.sandbox.filialId));
  // An owner can suspend a device only after it has enrolled.
  await enrollDevice(system.baseUrl, system.sandbox.stations[0]?.devices[0]?.enrollmentCode ?? "none");
});
afterAll(async () => {
  await system.stop();
  disk.remove();
});

interface Example {
  readonly path: string;
  readonly body: unknown;
}
type Schema = { readonly $ref?: string; readonly examples?: readonly unknown[] };
interface Media {
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
  readonly schema?: Schema;
}

/** The document's example of a request of this operation, at the first station and its first device. */
function exampleOf(operationId: string): Example {
  const row = routes.find((route) => route.operationId === operationId);
  if (row === undefined) throw new Error(`There is no operation ${operationId}.`);
  const document = JSON.parse(readFileSync(OPENAPI_FILE, "utf8")) as {
    paths: Record<string, Record<string, { requestBody?: { content: Record<string, Media> } }>>;
    components: { schemas: Record<string, Schema> };
  };
  const media = document.paths[row.path]?.["post"]?.requestBody?.content["application/json"];
  const named = document.components.schemas[media?.schema?.$ref?.split("/").at(-1) ?? ""];
  const body = media?.example ?? Object.values(media?.examples ?? {})[0]?.value ?? named?.examples?.[0];
  const [first] = system.sandbox.stations;
  const ids: Record<string, number | undefined> = {
    station_id: first?.stationId,
    device_id: first?.devices[0]?.deviceId,
  };
  return { path: row.path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => String(ids[name] ?? 1)), body };
}

/** Sends that request as a caller who may send it. */
async function answerTo(operationId: string): Promise<{ status: number; code: unknown; retryAfter: string | null }> {
  const { path, body } = exampleOf(operationId);
  const tokens = { backoffice: owner.token, cashier: cashier.token, robotics: fleetCredential, platform: PLATFORM_KEY };
  const token = Object.entries(tokens).find(([api]) => path.startsWith(`/api/${api}/`))?.[1];
  const sending = { ...(body === undefined ? {} : { json: body }), ...(token === undefined ? {} : { token }) };
  const answer = await send<{ code?: string }>(system.baseUrl, "POST", path, sending);
  return { status: answer.status, code: answer.body.code, retryAfter: answer.headers.get("retry-after") };
}

async function untilDisk(detail: string | null): Promise<void> {
  const read = async (): Promise<unknown> => {
    type Ready = { dependencies: { disk: object } };
    return (await send<Ready>(system.baseUrl, "GET", "/readyz")).body.dependencies.disk;
  };
  await expect.poll(read, WAIT).toMatchObject({ detail, required: false, free_bytes: expect.any(Number) as number });
  // Each process measures the disk separately, so the others may be later.
  await new Promise((resolve) => setTimeout(resolve, 1_200));
}

const openOrder = (): Promise<number> => newOrder(cashier, station, "2.00", "Tea");
const beginCash = async (orderId: number): Promise<string> => {
  const body = { order_id: orderId, route: "cash" };
  const { intent_id } = await cashier.good<{ intent_id: number }>("POST", `${station}/intents/`, { body });
  return `${station}/intents/${intent_id}/`;
};

describe("a disk with less free space than its reserve", () => {
  it("each operation that can wait: 503 `storage_low` with Retry-After; collections continue", async () => {
    disk.fill(6 * MEGABYTE);
    await untilDisk("disk_below_reserve");
    for (const operationId of WAITING_OPERATIONS) {
      if (COLLECTIONS.includes(operationId)) continue;
      const refused = { status: 503, code: "storage_low", retryAfter: "10" };
      expect(await answerTo(operationId), operationId).toEqual(refused);
    }
    const intent = await beginCash(await openOrder());
    expect(await cashier.good("POST", `${intent}attest/`)).toMatchObject({ status: "succeeded" });
  });
});

describe("a full disk", () => {
  it("no collection begins, a running one is completed; with free space again, every request is accepted", async () => {
    disk.fill(6 * MEGABYTE);
    await untilDisk("disk_below_reserve");
    const [first, second] = [await openOrder(), await openOrder()];
    const intent = await beginCash(first);
    disk.fill(0);
    await untilDisk("disk_full");
    await cashier.refused("storage_low", "POST", `${station}/orders/`, {
      body: { lines: [{ name: "Tea", quantity: 1, unit_amount: "2.00" }] },
    });
    expect(await cashier.good("POST", `${intent}attest/`)).toMatchObject({ status: "succeeded" });
    const body = { order_id: second, route: "cash" };
    await cashier.refused("storage_low", "POST", `${station}/intents/`, { body });
    // The service still accepts requests that make the system safer, and log-ins.
    const device = `devices/${system.sandbox.stations[0]?.devices[0]?.deviceId}`;
    expect(await owner.good("POST", `${device}/suspend/`)).toMatchObject({ status: "suspended" });
    await logIn(system.baseUrl, "cashier", system.cashier);

    disk.empty();
    await untilDisk(null);
    await owner.good("POST", "filials/", { body: { name: "Now" } });
    expect(await cashier.good("POST", `${await beginCash(second)}attest/`)).toMatchObject({ status: "succeeded" });
  });
});
