/** The states that a customer display must show. */
import { setTimeout as delay } from "node:timers/promises";
import { clientLimits } from "../../../limits.ts";
import { expectNot, expectSame, expectThat, Mismatch } from "../../expect.ts";
import { AMOUNT, type Collection, type Line } from "../../world.ts";
import { laterFields, newEtag, olderClock } from "../answer-changes.ts";
import type { Shown } from "../device.ts";
import type { DeviceCheck } from "../device-check.ts";
import type { DeviceWorld } from "../device-world.ts";
import type { Fault } from "../observer.ts";

const DISPLAY = "display/";
const ALWAYS = Number.MAX_SAFE_INTEGER;
const capability = "display_total";
/** The contract says "around every two seconds". */
const POLLS_MS = 14_000;
const POLL_MS = { least: 1_200, most: 4_000 };
const SLOW_BODY_MS = 4_000;
/** The sandbox provider never pays an amount that ends in 03: the code stays until the cashier ends the collection. */
const NEVER_PAID_AMOUNT = "12.03";
const NEVER_PAID = [{ name: "Soup of the day", quantity: 1, unit_amount: NEVER_PAID_AMOUNT }];

const STALE =
  "A display that got no answer three times in a row shows that it is offline, and shows neither a QR code nor `paid` any longer.";

/** Reads the display until the state is right. The suite asks a person only once, because the person waits. */
async function shows(world: DeviceWorld, what: string, isRight: (shown: Shown) => boolean): Promise<Shown> {
  const deadlineMs = performance.now() + clientLimits.conformanceShownMs;
  for (;;) {
    const shown = await world.device.shown();
    if (isRight(shown)) return shown;
    if (performance.now() > deadlineMs) throw new Mismatch("what the display shows", what, shown);
    await delay(clientLimits.conformancePollMs, undefined, { signal: world.wire.signal });
  }
}

/** Waits until the display shows the state with the right amount. */
const showsAmount = (world: DeviceWorld, state: "total" | "qr" | "paid", right: string): Promise<Shown> =>
  shows(world, `${state} ${right}`, (shown) => shown.state === state && shown.amount === right);
const showsTotal = (world: DeviceWorld, total: string = AMOUNT): Promise<Shown> => showsAmount(world, "total", total);

/** A cash collection, for which a display shows the total. */
async function withTotal(
  world: DeviceWorld,
  work: (collection: Collection) => Promise<void>,
  lines?: readonly Line[],
): Promise<void> {
  const collection = await world.world.collect("cash", lines === undefined ? {} : { lines });
  try {
    await work(collection);
  } finally {
    await world.end(collection);
  }
}

/** Each check uses another total, because the display may still show that of an earlier check. */
async function showsUnder(world: DeviceWorld, fault: Fault, total: string): Promise<void> {
  const lines = [{ name: "Soup of the day", quantity: 1, unit_amount: total }];
  const end = world.observer.interfere(undefined, fault, ALWAYS);
  try {
    await withTotal(world, async () => void (await showsTotal(world, total)), lines);
  } finally {
    end();
  }
}

/** A collection by QR that stays unpaid, for which a display shows the code. */
async function withQr(world: DeviceWorld, work: (shown: Shown) => Promise<void>): Promise<void> {
  await world.offered("dynamic_qr");
  const collection = await world.world.collect("dynamic_qr", { lines: NEVER_PAID });
  try {
    await work(await showsAmount(world, "qr", NEVER_PAID_AMOUNT));
  } finally {
    await world.end(collection);
  }
}

async function hidesWithoutAnswers(world: DeviceWorld): Promise<void> {
  const end = world.observer.interfere(undefined, { kind: "no connection" }, ALWAYS);
  try {
    await world.absent(
      async () => void (await shows(world, "neither paid nor qr", ({ state }) => state !== "paid" && state !== "qr")),
    );
  } finally {
    end();
  }
}

export const displayChecks: readonly DeviceCheck[] = [
  {
    id: "device.polls_display",
    capability,
    after: ["device.uses_credential"],
    quotes: [
      "Poll around every two seconds.",
      "Polling cadence: about two seconds for a display; a companion polls only between collections.",
    ],
    async run(world) {
      const fromMs = performance.now();
      await world.watch(POLLS_MS);
      const polls = world.requests(DISPLAY, fromMs).length;
      const everyMs = Math.round(POLLS_MS / Math.max(polls, 1));
      expectThat(
        "milliseconds between two polls",
        everyMs >= POLL_MS.least && everyMs <= POLL_MS.most,
        "around 2000",
        everyMs,
      );
    },
  },
  {
    id: "device.shows_idle",
    capability,
    after: ["device.uses_credential"],
    quotes: ["States: `idle`, `total`, `qr`, `paid`."],
    run: async (world) => void (await shows(world, "idle", ({ state }) => state === "idle")),
  },
  {
    id: "device.shows_total",
    capability,
    after: ["device.shows_idle"],
    quotes: ["state | string | one of `idle`, `total`, `qr`, `paid`; rendered verbatim by the device"],
    run: (world) => withTotal(world, async () => void (await showsTotal(world))),
  },
  {
    id: "device.clears_total",
    capability,
    after: ["device.shows_total"],
    quotes: ["state | string | one of `idle`, `total`, `qr`, `paid`; rendered verbatim by the device"],
    async run(world) {
      await withTotal(world, async () => void (await showsTotal(world)));
      await shows(world, "idle once the collection has ended", ({ state }) => state === "idle");
    },
  },
  {
    id: "device.keeps_unchanged",
    capability,
    after: ["device.shows_total"],
    quotes: ['The answer 304 means "unchanged" and has no body.'],
    run: (world) =>
      withTotal(world, async () => {
        await showsTotal(world);
        const fromMs = performance.now();
        await world.until("the display polls twice", () => world.requests(DISPLAY, fromMs)[1]?.answer);
        const { state, amount } = await world.device.shown();
        expectSame("what the display shows of an unchanged state", `${state} ${amount}`, `total ${AMOUNT}`);
      }),
  },
  {
    id: "device.shows_paid",
    capability,
    after: ["device.shows_total"],
    quotes: ["Ignore fields that you do not know. Show `state` and `amount` of the display as they are."],
    run: (world) =>
      withTotal(world, async ({ intentId }) => {
        await showsTotal(world);
        await world.world.decide(intentId, "attest");
        await showsAmount(world, "paid", AMOUNT);
      }),
  },
  {
    id: "device.hides_paid_when_stale",
    capability,
    after: ["device.shows_paid"],
    quotes: [STALE],
    run: (world) =>
      withTotal(world, async ({ intentId }) => {
        await world.world.decide(intentId, "attest");
        await showsAmount(world, "paid", AMOUNT);
        await hidesWithoutAnswers(world);
      }),
  },
  {
    id: "device.shows_under_later_fields",
    capability,
    after: ["device.shows_total"],
    quotes: ["Ignore fields that you do not know."],
    run: (world) => showsUnder(world, { kind: "change", change: laterFields }, "11.10"),
  },
  {
    id: "device.shows_under_other_clock",
    capability,
    after: ["device.shows_total"],
    quotes: ["`server_time` gives the offset of your clock."],
    run: (world) => showsUnder(world, { kind: "change", change: olderClock }, "11.20"),
  },
  {
    id: "device.shows_under_new_etags",
    capability,
    after: ["device.shows_total"],
    quotes: ["Send the `ETag` of the last 200 answer in `If-None-Match`."],
    run: (world) => showsUnder(world, { kind: "change", change: newEtag }, "11.30"),
  },
  {
    id: "device.shows_slow_body",
    capability,
    after: ["device.shows_total"],
    quotes: ["Give each request a time-out of 10 seconds."],
    run: (world) => showsUnder(world, { kind: "slow body", takesMs: SLOW_BODY_MS }, "11.40"),
  },
  {
    id: "device.shows_qr",
    capability: "qr_dynamic_present",
    after: ["device.shows_total"],
    quotes: ["`qr_payload` renders only on devices declaring `qr_dynamic_present`."],
    run: (world) =>
      withQr(world, async (shown) => {
        const served = world.requests(DISPLAY).findLast(({ answer }) => answer?.json["state"] === "qr");
        expectNot("`qr_payload` that the display was given", served?.answer?.json["qr_payload"], "");
        if (shown.qr_payload !== undefined)
          expectSame("`qr_payload` that is shown", shown.qr_payload, served?.answer?.json["qr_payload"]);
      }),
  },
  {
    id: "device.removes_qr",
    capability: "qr_dynamic_present",
    after: ["device.shows_qr"],
    quotes: [
      "qr_payload | string | required field; carries a value only in state `qr` and only for devices whose capabilities include `qr_dynamic_present`",
    ],
    async run(world) {
      await shows(world, "no QR code once the collection has ended", ({ state }) => state !== "qr");
      const { qr_payload: payload } = await world.device.shown();
      if (payload !== undefined) expectSame("`qr_payload` that is shown", payload, "");
    },
  },
  {
    id: "device.hides_qr_when_stale",
    capability: "qr_dynamic_present",
    after: ["device.shows_qr"],
    quotes: [STALE],
    run: (world) => withQr(world, () => hidesWithoutAnswers(world)),
  },
];
