/**
 * The magic names and amounts of the virtual companion: how it chooses a behaviour, the documented table, and each behaviour on
 * the real system up to its documented end.
 */

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import {
  type Behaviour,
  behaviourOf,
  DEFAULT_BEHAVIOUR,
  MAGIC_BEHAVIOURS,
  namedBehaviour,
  reportOf,
} from "../../clients/magic-behaviours.ts";
import { MAGIC_AMOUNTS } from "../../services/sandbox-provider/magic-amounts.ts";
import { logIn, newOrder, type Person } from "../support/people.ts";
import { startSystem, type TestSystem } from "../support/system.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";
import { openPlace, type Place, type PlaceDeps } from "./companion-place.ts";

/** One and a half intervals of heartbeats, so that a working companion never counts as offline. */
const SILENCE_MS = 15_000;
/** The shortest lifetime that a cashier may set. */
const LIFETIME_SECONDS = 30;
/** Enough time for two lifetimes in a row, with their waits, on a busy machine. */
const TEST_MS = 400_000;
/** Enough time for a lifetime and the steps after it. */
const WAIT = { timeout: 120_000, interval: 400 };

let system: TestSystem;
let folder: TemporaryFolder;
let cashier: Person;
let owner: Person;
let deps: PlaceDeps;
const places: Place[] = [];

beforeAll(async () => {
  system = await startSystem({ environment: { DEVICE_SILENCE_MS: String(SILENCE_MS) } });
  folder = temporaryFolder("magic");
  [cashier, owner] = await Promise.all([
    logIn(system.baseUrl, "cashier", system.cashier),
    logIn(system.baseUrl, "backoffice", system.owner),
  ]);
  const { baseUrl, sandbox } = system;
  deps = { baseUrl, owner, cashier, filialId: sandbox.filialId, folder: folder.path };
});
afterAll(async () => {
  for (const { companion } of places) companion.stop();
  await system.stop();
  folder.remove();
});

async function open(name: string): Promise<Place> {
  const place = await openPlace(deps, name);
  places.push(place);
  return place;
}

interface IntentBody {
  readonly intent_id: number;
  readonly status: string;
  readonly expires_at: string;
  readonly reports: readonly { outcome: string; provider_code: string; provider_reference: string }[];
  readonly report_count: number;
  readonly settle_offered: boolean;
  readonly cancel_offered: boolean;
}
interface RoutesBody {
  readonly routes: readonly { route: string; offered: boolean; reason: string | null; since: string | null }[];
  readonly companions: readonly { readiness: string; liveness: { online: boolean; last_seen_at: string | null } }[];
}
interface Collection {
  readonly place: Place;
  readonly orderId: number;
  readonly intentId: number;
  /** The path of the intent in the cashier's API. */
  readonly path: string;
  /** Whether the name or the amount chose the behaviour. */
  readonly by: "name" | "amount";
}

const openOrder = (place: Place, amount: string): Promise<number> =>
  newOrder(cashier, place.path, amount, "Soup of the day");

async function routesOf(place: Place) {
  const { routes, companions } = await cashier.good<RoutesBody>("GET", `${place.path}/routes/`);
  return { smartPos: routes.find(({ route }) => route === "smart_pos"), companion: companions[0] };
}

const offered = (place: Place) =>
  vi.waitFor(async () => expect(await routesOf(place)).toMatchObject({ smartPos: { offered: true } }), WAIT);

async function begin(place: Place, amount: string, by: Collection["by"]): Promise<Collection> {
  const orderId = await openOrder(place, amount);
  await offered(place);
  const body = { order_id: orderId, route: "smart_pos", lifetime_seconds: LIFETIME_SECONDS };
  const { intent_id: intentId } = await cashier.good<IntentBody>("POST", `${place.path}/intents/`, { body });
  return { place, orderId, intentId, path: `${place.path}/intents/${intentId}/`, by };
}

/** Waits until the companion has read its newest name for its first collection. */
const decided = ({ companion }: Place) =>
  vi.waitFor(() => expect(companion.to("devices/me/").length).toBeGreaterThan(0), WAIT);

const read = ({ path }: Collection) => cashier.good<IntentBody>("GET", path);
const reached = (collection: Collection, status: string) =>
  vi.waitFor(async () => {
    const intent = await read(collection);
    expect(intent.status).toBe(status);
    return intent;
  }, WAIT);
const reportsOf = ({ place, intentId }: Collection) =>
  place.companion
    .to("devices/assignment/report/")
    .filter(({ body }) => (body as { intent_id: number }).intent_id === intentId);

/** Expects that the cashier sees the evidence, that the collection is still active, and that both decisions are possible. */
async function reported(collection: Collection, outcome: string, code: string): Promise<void> {
  const { intentId } = collection;
  const reference = outcome === "reported_unknown" ? "" : `VIRT-${String(intentId).padStart(6, "0")}`;
  expect(await reached(collection, "processing")).toMatchObject({
    reports: [{ outcome, provider_code: code, provider_reference: reference }],
    report_count: 1,
    settle_offered: true,
    cancel_offered: true,
  });
  expect(await orderOf(collection)).toMatchObject({ status: "open", transaction: null });
}

const orderOf = ({ orderId }: Collection) => cashier.good("GET", `orders/${orderId}/`);
const cancel = ({ path }: Collection) => cashier.good("POST", `${path}cancel/`);

async function attest(collection: Collection): Promise<void> {
  await cashier.good("POST", `${collection.path}attest/`);
  await reached(collection, "succeeded");
  expect(await orderOf(collection)).toMatchObject({
    status: "paid",
    transaction: { intent_id: collection.intentId, route: "smart_pos" },
  });
}

/** Collects the order again. With a reason, this needs the cashier's confirmation; with null, it does not. */
async function collectAgain({ place, orderId, intentId: earlier }: Collection, reason: string | null): Promise<void> {
  const path = `${place.path}/intents/`;
  const body = { order_id: orderId, route: "cash" };
  if (reason !== null) {
    const refused = await cashier.refused("money_may_have_moved", "POST", path, { body });
    expect(refused.body).toMatchObject({ reason, earlier_intent_id: earlier });
  }
  const confirmed = reason === null ? body : { ...body, confirms_money_may_have_moved: true };
  const { intent_id: intentId } = await cashier.good<IntentBody>("POST", path, { body: confirmed });
  await cashier.good("POST", `${path}${intentId}/cancel/`);
}

/** A report that no money has moved. Chosen by name, the cashier cancels; by amount, the cashier attests, as with a slip. */
async function unpaid(collection: Collection, outcome: string, code: string): Promise<void> {
  await reported(collection, outcome, code);
  if (collection.by === "amount") return attest(collection);
  await cancel(collection);
  await reached(collection, "cancelled");
  await collectAgain(collection, null);
}

async function expires(collection: Collection, from: "created" | "presented"): Promise<void> {
  const { expires_at: expiresAt } = await reached(collection, from);
  await new Promise((resolve) => setTimeout(resolve, Date.parse(expiresAt) - Date.now() - 2_000));
  expect(await read(collection)).toMatchObject({ status: from, report_count: 0 });
  expect(await reached(collection, "expired")).toMatchObject({ report_count: 0 });
  expect(reportsOf(collection)).toEqual([]);
  await collectAgain(collection, from === "presented" ? "handoff_presented" : null);
}

async function goesOffline(collection: Collection): Promise<void> {
  const { place } = collection;
  const { expires_at: expiresAt } = await reached(collection, "presented");
  await vi.waitFor(async () => {
    expect(await routesOf(place)).toMatchObject({
      smartPos: { offered: false, reason: "device_offline", since: expect.any(String) },
      companion: { readiness: "offline", liveness: { online: false, last_seen_at: expect.any(String) } },
    });
  }, WAIT);
  expect(await read(collection)).toMatchObject({ status: "presented", report_count: 0 });
  await reached(collection, "expired");
  await offered(place);
  const lastBefore = place.companion.exchanges.findLast(({ atMs }) => atMs < Date.parse(expiresAt));
  expect(lastBefore?.atMs, "it was silent for longer than the silence period").toBeLessThan(
    Date.parse(expiresAt) - SILENCE_MS,
  );
  expect(reportsOf(collection)).toEqual([]);
  await collectAgain(collection, "handoff_presented");
}

/** The collection is cancelled when the name chose the behaviour, and expires when the amount did. */
async function late(collection: Collection, reason: string | null): Promise<void> {
  const status = collection.by === "name" ? "cancelled" : "expired";
  await reached(collection, "presented");
  await vi.waitFor(() => expect(collection.place.companion.to("devices/heartbeat/").length).toBeGreaterThan(1), WAIT);
  if (status === "cancelled") await cancel(collection);
  await reached(collection, status);
  await vi.waitFor(() => expect(reportsOf(collection)).toHaveLength(1), WAIT);
  expect(reportsOf(collection)[0]).toMatchObject({ status: 409, answer: { code: "intent_not_actionable", status } });
  expect(await orderOf(collection)).toMatchObject({ status: "open", transaction: null });
  expect(await read(collection)).toMatchObject({ money_may_have_moved: reason ?? "" });
  await collectAgain(collection, reason);
  await vi.waitFor(async () => {
    const timeline = await owner.good("GET", `intents/${collection.intentId}/timeline/`);
    expect(timeline).toMatchObject({ status, money_moved: reason === null ? "no" : "maybe" });
    expect(JSON.stringify(timeline)).toContain(`after the collection had ended as ${status}`);
  }, WAIT);
}

/** The documented end of each behaviour. */
const ENDS: Record<Exclude<Behaviour, "stay_offline">, (collection: Collection) => Promise<void>> = {
  approve: async (collection) => {
    await reported(collection, "reported_success", "00");
    await attest(collection);
  },
  decline: (collection) => unpaid(collection, "reported_declined", "05"),
  buyer_cancel: (collection) => unpaid(collection, "reported_cancelled", "17"),
  provider_down: (collection) => unpaid(collection, "reported_declined", "91"),
  never_answers: (collection) => expires(collection, "presented"),
  report_twice: async (collection) => {
    await reported(collection, "reported_success", "00");
    await vi.waitFor(() => expect(reportsOf(collection)).toHaveLength(2), WAIT);
    const [first, second] = reportsOf(collection);
    expect(second?.body).toEqual(first?.body);
    expect(first?.answer).toMatchObject({ report: { outcome: "reported_success" } });
    expect(second?.answer).toEqual(first?.answer);
    expect(await read(collection)).toMatchObject({ report_count: 1 });
    await attest(collection);
  },
  go_offline: goesOffline,
  late_success: (collection) => late(collection, "late_success"),
  late_decline: (collection) => late(collection, null),
  unknown: async (collection) => {
    await reported(collection, "reported_unknown", "68");
    await cancel(collection);
    await reached(collection, "cancelled");
    await collectAgain(collection, "outcome_unknown");
  },
  never_poll: async (collection) => {
    const { place } = collection;
    const shown = {
      smartPos: { offered: true, reason: null },
      companion: { readiness: "not_polling", liveness: { online: true } },
    };
    expect(await routesOf(place)).toMatchObject(shown);
    await expires(collection, "created");
    expect(await routesOf(place), "online all the time").toMatchObject(shown);
    expect(place.companion.to("devices/assignment/")).toEqual([]);
  },
};

async function isOffline(place: Place): Promise<void> {
  // The companion has read its snapshot twice, and is still offline.
  await vi.waitFor(() => expect(place.companion.to("devices/me/").length).toBeGreaterThan(1), WAIT);
  expect(await routesOf(place)).toMatchObject({
    smartPos: { offered: false, reason: "device_offline", since: null },
    companion: { readiness: "offline", liveness: { online: false, last_seen_at: null } },
  });
  const body = { order_id: await openOrder(place, "12.50"), route: "smart_pos" };
  const refused = await cashier.refused("route_not_offered", "POST", `${place.path}/intents/`, { body });
  expect(refused.body.reason).toBe("device_offline");
  expect(new Set(place.companion.exchanges.map(({ path }) => path))).toEqual(
    new Set(["devices/enroll/", "devices/me/"]),
  );
}

/** An amount that would choose another behaviour, because here the name must decide. */
const otherAmount = (amountEnding: string | null): string => (amountEnding === "02" ? "12.01" : "12.02");

/**
 * `npm run soak` runs each behaviour by name and by amount. Otherwise each one runs once: these by amount, the others by name.
 * So each kind of end has one behaviour by name and one by amount.
 */
const SHORT_BY_AMOUNT: readonly Behaviour[] = [
  "buyer_cancel",
  "never_answers",
  "go_offline",
  "late_success",
  "unknown",
];
const IS_LONG = process.env["MAGIC_ENDINGS"] === "all";
const BY_NAME = MAGIC_BEHAVIOURS.filter(({ behaviour }) => IS_LONG || !SHORT_BY_AMOUNT.includes(behaviour));
const BY_AMOUNT = MAGIC_BEHAVIOURS.filter(
  ({ behaviour, amountEnding }) => amountEnding !== null && (IS_LONG || SHORT_BY_AMOUNT.includes(behaviour)),
);

describe.concurrent("a virtual companion", { timeout: TEST_MS }, () => {
  // The behaviours that wait for a deadline begin first. The others run at the same time.
  it.each(BY_AMOUNT)(
    "an amount that ends in $amountEnding: the collection ends as documented",
    async ({ behaviour, amountEnding }) => {
      const place = await open(`Till of the ${amountEnding} cents`);
      if (behaviour !== "stay_offline") await ENDS[behaviour](await begin(place, `12.${amountEnding}`, "amount"));
    },
  );

  it.each(BY_NAME.toReversed())(
    "a name that ends in '$nameEnding': the collection ends as documented",
    async ({ behaviour, nameEnding, amountEnding }) => {
      const place = await open(`Till ${nameEnding}`);
      if (behaviour === "stay_offline") await isOffline(place);
      else await ENDS[behaviour](await begin(place, otherAmount(amountEnding), "name"));
      if (amountEnding !== null) return;
      // A behaviour that only a name can choose ends when the name changes.
      await place.rename("Till of the day");
      await ENDS.approve(await begin(place, "12.50", "amount"));
    },
  );

  it("a restart under another name: adds no report to the earlier collection", async () => {
    const first = await open("Second till declines");
    const collection = await begin(first, "12.50", "name");
    await reported(collection, "reported_declined", "05");
    await vi.waitFor(() => expect(first.companion.stored()?.attempt?.step).toBe("answered"), WAIT);
    await first.rename("Second till approves");
    const second = await first.restart();
    places.push(second);
    await vi.waitFor(() => expect(second.companion.to("devices/assignment/").length).toBeGreaterThan(2), WAIT);
    await reported(collection, "reported_declined", "05");
    expect(second.companion.to("devices/assignment/report/")).toEqual([]);
    await cancel(collection);
  });

  it("a restart before a late report: reports unknown, and makes the next collection", async () => {
    const first = await open("Fourth till reports late");
    const collection = await begin(first, "12.50", "name");
    await decided(first);
    const second = await first.restart();
    places.push(second);
    await reported(collection, "reported_unknown", "");
    expect(second.companion.to("devices/assignment/report/")).toHaveLength(1);
    await cancel(collection);
    await second.rename("Fourth till approves");
    await ENDS.approve(await begin(second, "12.50", "name"));
  });

  it("a collection after one with a late report: made, although the wait for the late one has polled too", async () => {
    const place = await open("Fifth till reports late");
    const collection = await begin(place, "12.50", "name");
    await decided(place);
    await place.rename("Fifth till approves");
    await cancel(collection);
    // The poll that waits for the end of the first collection fetches this one.
    const next = await begin(place, "12.50", "name");
    await vi.waitFor(() => expect(reportsOf(collection)).toHaveLength(1), WAIT);
    await ENDS.approve(next);
  });

  it("a name that the owner sets just before the collection: decides", async () => {
    const place = await open("Third till approves");
    await offered(place);
    for (const [name, outcome, code] of [
      ["Third till cancels", "reported_cancelled", "17"],
      ["Third till", "reported_success", "00"],
    ] as const) {
      await place.rename(name);
      const collection = await begin(place, "12.50", "name");
      await reported(collection, outcome, code);
      await cancel(collection);
    }
  });
});

const NAME_ENDINGS = MAGIC_BEHAVIOURS.map(({ nameEnding }) => nameEnding);
const AMOUNT_ENDINGS = MAGIC_BEHAVIOURS.flatMap(({ amountEnding }) => amountEnding ?? []);
const RUNS = { numRuns: 2_000 };

/** Names that nearly match: words of the table at any place, joined or separate, with any other text. */
const anyName = fc
  .tuple(
    fc.array(
      fc.oneof(fc.string(), fc.string({ unit: "grapheme" }), fc.constantFrom(...NAME_ENDINGS, "Till", "polls", "x")),
      { maxLength: 4 },
    ),
    fc.constantFrom("", " ", "-"),
  )
  .map(([words, between]) => words.join(between));
/** Another way than the product's: the words of an ending, with no letter or digit before them and no word after them. */
const MAGIC_NAMES = NAME_ENDINGS.map((ending) => {
  const words = ending.split(" ").join(String.raw`[^\p{L}\p{N}]+`);
  return new RegExp(String.raw`(?<![\p{L}\p{N}])${words}[^\p{L}\p{N}]*$`, "u");
});
const asksForNothing = (name: string): boolean => MAGIC_NAMES.every((magic) => !magic.test(name.toLowerCase()));
const plainName = anyName.filter(asksForNothing);
const anyAmount = fc
  .tuple(fc.integer({ min: 0, max: 9_999_999_999 }), fc.integer({ min: 0, max: 99 }))
  .map(([whole, cents]) => `${whole}.${String(cents).padStart(2, "0")}`);

describe("how a virtual companion chooses a behaviour", () => {
  it("any other name and amount: approves", () => {
    const plainAmount = anyAmount.filter((amount) => !AMOUNT_ENDINGS.some((ending) => amount.endsWith(ending)));
    fc.assert(
      fc.property(plainName, plainAmount, (name, amount) => {
        expect(behaviourOf(name, amount)).toBe(DEFAULT_BEHAVIOUR);
      }),
      RUNS,
    );
    expect(reportOf(DEFAULT_BEHAVIOUR)).toEqual({ outcome: "reported_success", providerCode: "00" });
  });

  it("a name without a magic ending: the last two digits of the amount decide", () => {
    const magic = fc.constantFrom(...MAGIC_BEHAVIOURS.filter(({ amountEnding }) => amountEnding !== null));
    fc.assert(
      fc.property(plainName, fc.nat(), magic, (name, whole, { amountEnding, behaviour }) => {
        expect(behaviourOf(name, `${whole}.${amountEnding}`)).toBe(behaviour);
        expect(behaviourOf(name, `${whole}${amountEnding}`)).toBe(behaviour);
      }),
      RUNS,
    );
    expect(behaviourOf("Till", "1")).toBe("decline");
    expect(behaviourOf("Till", "0.01")).toBe("decline");
    expect(behaviourOf("Till", "1.00")).toBe("approve");
  });

  it("a name with a magic ending: decides before the amount, in any case and after any separator", () => {
    const magic = fc.constantFrom(...MAGIC_BEHAVIOURS);
    const separator = fc.constantFrom(" ", "-", " – ", "_", ": ");
    fc.assert(
      fc.property(anyName, separator, magic, anyAmount, (name, between, { nameEnding, behaviour }, amount) => {
        for (const ending of [nameEnding, nameEnding.toUpperCase(), `${nameEnding} `])
          expect(behaviourOf(`${name}${between}${ending}`, amount)).toBe(behaviour);
      }),
      RUNS,
    );
    for (const { nameEnding, behaviour } of MAGIC_BEHAVIOURS) expect(namedBehaviour(nameEnding)).toBe(behaviour);
  });

  it("a part of a word, or words in the middle of a name: not magic", () => {
    for (const name of ["", "Till 3", "declines never", "Till declinesx", "Undeclines", "Till polls", "offline"])
      expect(namedBehaviour(name), name).toBeUndefined();
  });
});

describe("the table of magic behaviours", () => {
  it("its endings: each occurs once, and no name ends in another name", () => {
    expect(new Set(AMOUNT_ENDINGS).size).toBe(AMOUNT_ENDINGS.length);
    expect(AMOUNT_ENDINGS.every((ending) => /^\d\d$/.test(ending))).toBe(true);
    for (const ending of NAME_ENDINGS) expect(NAME_ENDINGS.filter((other) => ending.endsWith(other))).toEqual([ending]);
  });

  it("an amount that the sandbox provider also has: the same meaning there", () => {
    const atProvider = new Map<string, string>(MAGIC_AMOUNTS.map(({ ending, scenario }) => [ending, scenario]));
    const both = MAGIC_BEHAVIOURS.flatMap(({ amountEnding, behaviour }) => {
      const scenario = atProvider.get(amountEnding ?? "");
      return scenario === undefined ? [] : [[behaviour, scenario]];
    });
    expect(both).toEqual([
      ["decline", "decline"],
      ["buyer_cancel", "buyer_cancel"],
      ["never_answers", "never_pays"],
      ["report_twice", "duplicate_callback"],
      ["late_success", "late_success"],
      ["unknown", "unknown"],
      ["provider_down", "provider_down"],
    ]);
  });

  it("docs/sandbox.md: has the same rows", () => {
    const text = readFileSync(new URL("../../docs/sandbox.md", import.meta.url), "utf8");
    const [, section = ""] = text.split("## Names and amounts at the virtual companion\n");
    const rows = section
      .split("\n")
      .filter((line) => /^\| `[a-z ]+` /.test(line))
      .map((line) => line.split("|").map((cell) => cell.trim()));
    expect(rows.map(([, name, amount, companion, outcome]) => [name, amount, companion, outcome])).toEqual(
      MAGIC_BEHAVIOURS.map(({ nameEnding, amountEnding, companion, outcome }) => [
        `\`${nameEnding}\``,
        amountEnding === null ? "–" : `\`${amountEnding}\``,
        companion,
        outcome,
      ]),
    );
  });

  it("print-magic-behaviours.ts: prints the table as one line of JSON", () => {
    const script = new URL("../../clients/print-magic-behaviours.ts", import.meta.url).pathname;
    const printed: unknown = JSON.parse(execFileSync(process.execPath, [script], { encoding: "utf8" }));
    expect(printed).toEqual({ magic_behaviours: MAGIC_BEHAVIOURS });
  });
});
