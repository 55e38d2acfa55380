/**
 * The device kit against the real service, with power cuts before and after storage writes, requests and launches: no second
 * payment, no lost report, and no success after silence.
 *
 * In `npm test`, the power is cut at some steps; with POWER_CUTS=all, as in `npm run soak`, at every step.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type Companion, companion } from "../../../clients/device-kit/companion.ts";
import type { Outcome } from "../../../clients/device-kit/companion-machine.ts";
import { hostPlatform, type Platform } from "../../../clients/device-kit/platform.ts";
import type { DeviceStorage } from "../../../clients/device-kit/record.ts";
import { memoryStorage } from "../../../clients/device-kit/storage/memory.ts";
import { logIn, newOrder, type Person } from "../../support/people.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

/** The kit's clock is this much faster than the service's, so that the kit waits less for its next poll. */
const SPEED = 4;
const ALL = process.env["POWER_CUTS"] === "all";
/** The steps of one life at which `npm test` cuts the power. A life is from the enrollment to the answered report. */
const SOME = [2, 4, 10, 12, 14, 16, 17];
/** More steps than a life has. With POWER_CUTS=all, the test ends at the first life without a cut. */
const MOST = 60;
const WAIT = { timeout: 90_000, interval: 250 };
const TEST_MS = ALL ? 3_600_000 : 180_000;

let system: TestSystem;
let owner: Person;
let cashier: Person;
beforeAll(async () => {
  system = await sharedSystem({ claims: true });
  [owner, cashier] = await Promise.all([
    logIn(system.baseUrl, "backoffice", system.owner),
    logIn(system.baseUrl, "cashier", system.cashier),
  ]);
});
afterAll(() => system.stop());

/** A device's payment application, which has a separate power supply. */
function paymentApplication() {
  const paid = new Map<string, Outcome>();
  const launched: number[] = [];
  return {
    launched,
    paid,
    pay(intentId: number, reference: string): Outcome {
      launched.push(intentId);
      const outcome: Outcome = {
        outcome: "reported_success",
        provider_reference: `RRN-${intentId}`,
        provider_code: "00",
      };
      paid.set(reference, outcome);
      return outcome;
    },
  };
}

/** Cuts the power at one step. No later step of this life runs. */
function createPower(cutAt: number) {
  let steps = 0;
  let isCut = false;
  const cut = Promise.withResolvers<string>();
  return {
    cut: cut.promise,
    isCut: () => isCut,
    /** Resolves, unless the power is cut: then it never does. */
    async step(name: string): Promise<void> {
      steps += 1;
      if (steps === cutAt) {
        isCut = true;
        cut.resolve(name);
      }
      if (isCut) await new Promise<never>(() => undefined);
    },
  };
}
type Power = ReturnType<typeof createPower>;

function powered(storage: DeviceStorage, power: Power): DeviceStorage {
  return {
    read: () => storage.read(),
    remove: () => storage.remove(),
    async write(text) {
      await power.step("before a write");
      await storage.write(text);
      await power.step("after a write");
    },
  };
}

function fastPlatform(power: Power): Platform {
  const host = hostPlatform();
  return {
    ...host,
    nowMs: () => host.nowMs() * SPEED,
    setTimeout: (callback, ms) => host.setTimeout(() => (power.isCut() ? undefined : callback()), ms / SPEED),
    async fetch(url, init) {
      const name = url.split("/").at(-2);
      await power.step(`before ${name}`);
      const answer = await host.fetch(url, init);
      await power.step(`after ${name}`);
      return answer;
    },
  };
}

interface Place {
  readonly path: string;
  readonly deviceId: number;
}
async function openPlace(name: string): Promise<Place> {
  const station = { filial_id: system.sandbox.filialId, name: `Counter ${name}`, currency: "EUR" };
  const { station_id: stationId } = await owner.good<{ station_id: number }>("POST", "stations/", { body: station });
  const device = { station_id: stationId, name: `Till ${name}`, kind: "smart_pos_companion" };
  const { device_id: deviceId } = await owner.good<{ device_id: number }>("POST", "devices/", { body: device });
  const path = `stations/${stationId}`;
  await vi.waitFor(() => cashier.good("POST", `${path}/lease/`), WAIT);
  return { path, deviceId };
}

async function newCode({ deviceId }: Place): Promise<string> {
  await owner.good("POST", `devices/${deviceId}/reset/`);
  return (await owner.good<{ code: string }>("POST", `devices/${deviceId}/enrollment-codes/`)).code;
}

interface Intent {
  readonly intent_id: number;
  readonly status: string;
  readonly report_count: number;
  readonly reports: readonly { readonly outcome: string; readonly provider_reference: string }[];
}
/** Creates a collection as the cashier, as soon as the companion is online. */
async function collect({ path }: Place): Promise<Intent> {
  const order_id = await newOrder(cashier, path, "12.50");
  const body = { order_id, route: "smart_pos" };
  return await vi.waitUntil(async () => {
    const answer = await cashier.call<Intent>("POST", `${path}/intents/`, { body });
    return answer.status === 201 ? answer.body : undefined;
  }, WAIT);
}

interface Life {
  readonly storage: DeviceStorage;
  readonly application: ReturnType<typeof paymentApplication>;
  readonly canAsk: boolean;
}
function startLife({ storage, application, canAsk }: Life, power: Power, code: string | undefined): Companion {
  return companion({
    baseUrl: system.baseUrl,
    storage: powered(storage, power),
    code,
    platform: fastPlatform(power),
    async launch({ intent_id, reference }) {
      await power.step("before the launch");
      const outcome = application.pay(intent_id, reference);
      await power.step("after the launch");
      return outcome;
    },
    ...(canAsk ? { status: async (reference: string) => application.paid.get(reference) ?? null } : {}),
  });
}

/** Does one collection with a cut. Returns the name of the step, or undefined when the life ended before the cut. */
async function cutOnce(place: Place, cutAt: number): Promise<string | undefined> {
  const life: Life = { storage: memoryStorage(), application: paymentApplication(), canAsk: cutAt % 2 === 0 };
  const power = createPower(cutAt);
  const first = startLife(life, power, await newCode(place));
  const collecting = collect(place);
  const readIntent = async (): Promise<Intent> =>
    await cashier.good<Intent>("GET", `${place.path}/intents/${(await collecting).intent_id}/`);
  const isAnswered = async (device: Companion, { isCut }: Power): Promise<void> => {
    await vi.waitUntil(async () => isCut() || (await readIntent()).status === "processing", WAIT);
    await vi.waitUntil(() => isCut() || device.state().record?.attempt?.step === "answered", WAIT);
  };
  const cutName = await Promise.race([power.cut, isAnswered(first, power).then(() => undefined)]);
  first.stop();
  const always = createPower(0);
  const second = startLife(life, always, undefined);
  await vi.waitUntil(async () => {
    if (second.state().phase === "needs_code") second.enroll(await newCode(place));
    return second.state().isReady;
  }, WAIT);
  await isAnswered(second, always);
  second.stop();
  const { launched, paid } = life.application;
  const intent = await readIntent();
  const where = `cut ${cutAt}: ${cutName}`;
  expect(launched.length, `${where}: never two payments`).toBeLessThanOrEqual(1);
  expect(intent.report_count, `${where}: the report is there, once`).toBe(1);
  const outcome = intent.reports[0]?.outcome;
  if (paid.size === 0) expect(outcome, `${where}: silence is no success`).toBe("reported_unknown");
  else if (life.canAsk) expect(outcome, `${where}: the application was asked`).toBe("reported_success");
  else expect(["reported_success", "reported_unknown"], where).toContain(outcome);
  // A device never launches a collection that it receives with its very first poll (docs/devices.md, "After a restart").
  if (cutName === undefined && launched.length > 0) expect(outcome, where).toBe("reported_success");
  await cashier.good("POST", `${place.path}/intents/${intent.intent_id}/cancel/`);
  return cutName;
}

describe("a companion whose power is cut", { timeout: TEST_MS }, () => {
  it("at each write, request or launch: at most one payment, exactly one report, and no success after silence", async () => {
    if (!ALL) {
      const cuts = await Promise.all(SOME.map(async (step) => await cutOnce(await openPlace(`cut ${step}`), step)));
      expect(cuts.filter((cut) => cut !== undefined).length).toBeGreaterThan(3);
      return;
    }
    const place = await openPlace("of all cuts");
    const names = new Set<string>();
    for (let step = 1; step <= MOST; step += 1) {
      const name = await cutOnce(place, step);
      if (name === undefined) break;
      names.add(name);
    }
    for (const name of ["enroll", "heartbeat", "assignment", "report", "a write", "the launch"])
      for (const side of ["before", "after"]) expect(names).toContain(`${side} ${name}`);
  });
});
