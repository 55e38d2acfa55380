/** How a smart POS companion handles its assignments, and how it reports. */
import { perRun } from "../../check.ts";
import { expectField, expectNot, expectSame, expectThat } from "../../expect.ts";
import type { Collection } from "../../world.ts";
import { laterFields, newEtag, olderClock } from "../answer-changes.ts";
import type { PaymentAct } from "../device.ts";
import type { DeviceCheck } from "../device-check.ts";
import type { DeviceWorld } from "../device-world.ts";
import type { Fault, Observed } from "../observer.ts";

const ASSIGNMENT = "assignment/";
const REPORT = "assignment/report/";
const FIELDS = ["intent_id", "outcome", "provider_reference", "provider_code", "client_idempotency_key"];
const ALWAYS = Number.MAX_SAFE_INTEGER;
const SLOW_BODY_MS = 4_000;
const RETRY_AFTER_SECONDS = 2;
const EARLY_MS = 100;
/** Within this time a device that mistakes the collection for a new one reports it again. */
const SECOND_REPORT_MS = 5_000;
/** The time from the fetch until the payment application is open. */
const LAUNCH_MS = 1_500;
/** The shortest lifetime that the service allows, and the time that the device may need after it. */
const LIFETIME_SECONDS = 30;
const AFTER_EXPIRY_MS = 15_000;
/** A report without an answer is repeated after half a minute at the latest. */
const REPEATED_MS = 35_000;

const keyOf = (report: Observed | undefined): unknown => report?.json["client_idempotency_key"];
/** Whether the guide allows no repetition after this answer. */
const isAnswered = ({ answer }: Observed): boolean =>
  answer !== undefined && answer.status < 500 && ![403, 408, 429].includes(answer.status);
const keysOf = (reports: readonly Observed[]): number => new Set(reports.map(keyOf)).size;

/** A whole collection with a fault: the device reports the payment application's answer with one key. */
async function collects(world: DeviceWorld, operation: string | undefined, fault: Fault, watchMs = 0): Promise<void> {
  let end: (() => void) | undefined;
  const before = (): void => {
    end = world.observer.interfere(operation, fault, ALWAYS);
  };
  try {
    const work = async (collection: Collection): Promise<void> => {
      const { json } = await world.reported(collection);
      expectSame("`outcome` of the report", json["outcome"], "reported_success");
      if (watchMs > 0) await world.watch(watchMs);
      expectSame("keys of the reports", keysOf(world.reportsOf(collection)), 1);
    };
    await world.collecting("approve", work, { before });
  } finally {
    end?.();
  }
}

const reports =
  (act: PaymentAct, outcome: string): DeviceCheck["run"] =>
  (world) =>
    world.collecting(act, async (collection) => {
      const { json } = await world.reported(collection);
      expectSame("`outcome` of the report", json["outcome"], outcome);
      expectFields(world);
    });

/** No report of the run so far has a money field, or another field that the contract does not have. */
function expectFields(world: DeviceWorld): void {
  for (const name of world.requests(REPORT).flatMap(({ json }) => Object.keys(json)))
    expectThat("fields of the report", FIELDS.includes(name), FIELDS.join(", "), name);
}

/** The first report fails; the device repeats it with the same key. */
async function repeats(world: DeviceWorld, fault: Fault): Promise<readonly [Observed, Observed]> {
  const found: Observed[] = [];
  const before = (): void => void world.observer.interfere(REPORT, fault);
  await world.collecting(
    "approve",
    async (collection) => {
      await world.reported(collection);
      found.push(...world.reportsOf(collection));
    },
    { before },
  );
  const [first, second] = found as [Observed, Observed];
  for (const each of found.slice(1))
    expectSame("`client_idempotency_key` of the repetition", keyOf(each), keyOf(first));
  expectSame("the repeated report", second.json, first.json);
  return [first, second];
}

export const handoffChecks: readonly DeviceCheck[] = [
  {
    id: "device.takes_collection",
    capability: "handoff_present",
    after: ["device.uses_credential"],
    quotes: [
      "created | device GET assignment | assignment fetched fresh | presented | recorded as presented; this is the only state change a device can cause on its own",
    ],
    run: (world) =>
      world.collecting("approve", async (collection) => {
        await world.until("the device fetches the assignment", () => fetched(world, collection.intentId));
        // The collection is still open when the device reports, because this check is not about late reports.
        await world.reported(collection).catch(() => undefined);
      }),
  },
  {
    id: "device.ignores_later_fields",
    capability: "handoff_present",
    after: ["device.takes_collection"],
    quotes: ["Ignore fields that you do not know."],
    run: (world) => collects(world, undefined, { kind: "change", change: laterFields }),
  },
  {
    id: "device.trusts_server_time",
    capability: "handoff_present",
    after: ["device.takes_collection"],
    quotes: ["Count deadlines on a monotonic clock from there, never on the clock that a person can change."],
    run: (world) => collects(world, undefined, { kind: "change", change: olderClock }),
  },
  {
    id: "device.waits_for_slow_body",
    capability: "handoff_present",
    after: ["device.takes_collection"],
    quotes: ["Give each request a time-out of 10 seconds."],
    run: (world) => collects(world, ASSIGNMENT, { kind: "slow body", takesMs: SLOW_BODY_MS }),
  },
  {
    id: "device.collects_once",
    capability: "handoff_present",
    after: ["device.takes_collection"],
    quotes: [
      "The rule holds also while `GET assignment/` still shows the intent as `presented`: a fetch that presents it and a later fetch get the same answer.",
    ],
    async run(world) {
      const end = world.observer.interfere(
        ASSIGNMENT,
        { kind: "drop request headers", names: ["if-none-match"] },
        ALWAYS,
      );
      try {
        await collects(world, ASSIGNMENT, { kind: "change", change: newEtag }, SECOND_REPORT_MS);
      } finally {
        end();
      }
    },
  },
];

const lapsedIn = perRun<{ reports: readonly Observed[] }>(() => ({ reports: [] }));

export const reportChecks: readonly DeviceCheck[] = [
  {
    id: "device.reports_success",
    capability: "outcome_report",
    after: ["device.takes_collection"],
    quotes: [
      "`reported_success` = payment application returned an approval; `reported_declined` = it returned a decline; `reported_cancelled` = guest or cashier abandoned it in the app; `reported_unknown` = nothing usable returned or the wait timed out.",
      "client_idempotency_key | string | no, but senders should always send it | idempotency key for this report",
      "A device supplies no money field and cannot amend one; every money value is authored by the backend from order truth.",
    ],
    run: (world) =>
      world.collecting("approve", async (collection) => {
        const { json } = await world.reported(collection);
        expectSame("`outcome` of the report", json["outcome"], "reported_success");
        expectField(json, "client_idempotency_key", "text");
        expectFields(world);
        const others = world.requests(REPORT).filter((each) => each.json["intent_id"] !== collection.intentId);
        for (const other of others)
          expectNot("`client_idempotency_key` of another collection", keyOf(other), json["client_idempotency_key"]);
      }),
  },
  {
    id: "device.reports_decline",
    capability: "outcome_report",
    after: ["device.reports_success"],
    quotes: ["Report every outcome, also a decline, and also when it is late."],
    run: reports("decline", "reported_declined"),
  },
  {
    id: "device.reports_cancellation",
    capability: "outcome_report",
    after: ["device.reports_success"],
    quotes: ["`reported_cancelled` | the guest or the cashier abandoned it in the application"],
    run: reports("cancel", "reported_cancelled"),
  },
  {
    id: "device.reports_once",
    capability: "outcome_report",
    after: ["device.reports_success"],
    quotes: [
      "A retry with the same `client_idempotency_key` returns the original outcome and does not record a second report.",
    ],
    run: (world) =>
      world.collecting("approve_twice", async (collection) => {
        await world.reported(collection);
        await world.watch(SECOND_REPORT_MS);
        expectSame("keys of the reports", keysOf(world.reportsOf(collection)), 1);
      }),
  },
  {
    id: "device.repeats_lost_report",
    capability: "outcome_report",
    after: ["device.reports_success"],
    quotes: [
      "A duplicate report with the same `client_idempotency_key` is not an error; it returns the original outcome.",
    ],
    run: async (world) => void (await repeats(world, { kind: "lose answer" })),
  },
  {
    id: "device.repeats_refused_report",
    capability: "outcome_report",
    after: ["device.reports_success"],
    quotes: [
      "Repeat the same request, with the same key, while the answer is 403 (except `scope_denied`), 408, 429 or any 5xx, or there is none; the table below has the pauses.",
    ],
    async run(world) {
      for (const refused of [
        { status: 503, code: "unavailable" },
        // A proxy that does not reach the service.
        { status: 502, code: "bad_gateway" },
        { status: 429, code: "throttled" },
      ] as const) {
        const fault = { kind: "refuse", ...refused, retryAfterSeconds: RETRY_AFTER_SECONDS } as const;
        const [first, second] = await repeats(world, fault);
        const gapMs = second.atMs - (first.answer?.atMs ?? 0);
        const atLeastMs = RETRY_AFTER_SECONDS * 1_000 - EARLY_MS;
        expectThat(
          "milliseconds until the repetition",
          gapMs >= atLeastMs,
          `at least ${RETRY_AFTER_SECONDS} s`,
          Math.round(gapMs),
        );
      }
    },
  },
  {
    id: "device.repeats_blocked_report",
    capability: "outcome_report",
    after: ["device.reports_success"],
    quotes: ["Once the block ends, its repetition is accepted under the same key, unless the collection has ended"],
    run: (world) =>
      world.collecting("hold", async (collection) => {
        await world.until("the device fetches the assignment", () => fetched(world, collection.intentId));
        await world.whileSuspended(async () => {
          await world.device.finish();
          await world.until("the device reports while it is blocked", () =>
            world.reportsOf(collection).find(({ answer }) => answer?.status === 403),
          );
        });
        await world.until(
          "the device repeats its report once it is resumed",
          () => world.reportsOf(collection).find(({ answer }) => answer?.status === 200),
          Math.max(AFTER_EXPIRY_MS, world.device.stepMs),
        );
        expectSame("keys of the reports", keysOf(world.reportsOf(collection)), 1);
      }),
  },
  {
    id: "device.reports_after_power_cut",
    capability: "outcome_report",
    after: ["device.reports_success", "device.keeps_credential"],
    quotes: ['a result, not "answered" | report it again with the stored key'],
    async run(world) {
      const end = world.observer.interfere(REPORT, { kind: "lose answer" }, ALWAYS);
      try {
        await world.collecting("approve", async (collection) => {
          await world.until("the device reports", () => world.reportsOf(collection)[0]);
          await world.absent(async () => {
            await world.device.restart();
            end();
            await world.reported(collection);
          });
          const all = world.reportsOf(collection);
          expectSame("keys of the reports", keysOf(all), 1);
          expectSame("the report after the power cut", all.at(-1)?.json, all[0]?.json);
        });
      } finally {
        end();
      }
    },
  },
  {
    id: "device.never_launches_again",
    capability: "outcome_report",
    after: ["device.reports_success", "device.keeps_credential"],
    quotes: ["Never launch it again for this intent:"],
    run: (world) =>
      world.collecting(
        "hold",
        async (collection) => {
          await world.until("the device fetches the assignment", () => fetched(world, collection.intentId));
          await world.watch(LAUNCH_MS);
          const first = await world.absent(async () => {
            await world.device.restart();
            // The answer of the payment application if the device wrongly launches it again.
            await world.device.payments("decline");
            return world.until(
              "the device reports that it does not know",
              () => world.reportsOf(collection).find(({ answer }) => answer !== undefined),
              Math.max(LIFETIME_SECONDS * 1_000 + AFTER_EXPIRY_MS, world.device.stepMs),
            );
          });
          expectSame("`outcome` of a payment that a power cut has ended", first.json["outcome"], "reported_unknown");
          expectSame("keys of the reports", keysOf(world.reportsOf(collection)), 1);
        },
        { lifetimeSeconds: LIFETIME_SECONDS },
      ),
  },
  {
    id: "device.never_guesses",
    capability: "outcome_report",
    after: ["device.reports_success"],
    quotes: [
      "Never turn silence into a success or a decline.",
      "`reported_unknown` is a valid answer for a timed-out or unusable collection.",
    ],
    run: (world) =>
      world.collecting(
        "hold",
        async (collection) => {
          // So a device with a shorter time-out is answered after the end, too.
          const end = world.observer.interfere(REPORT, { kind: "no connection" }, ALWAYS);
          try {
            await world.watch(LIFETIME_SECONDS * 1_000);
            const read = async () => (await world.world.intent(collection.intentId))["status"];
            await world.world.until("`status` of the intent", AFTER_EXPIRY_MS, read, (status) => status === "expired");
          } finally {
            end();
          }
          const first = await world.until(
            "the device reports that it does not know, and is answered 409",
            () => world.reportsOf(collection).find(({ answer }) => answer?.status === 409),
            Math.max(REPEATED_MS, world.device.stepMs),
          );
          expectSame("`outcome` of a payment without an answer", first.json["outcome"], "reported_unknown");
          expectFields(world);
          await world.device.finish();
          await world.watch(SECOND_REPORT_MS);
          lapsedIn(world).reports = world.reportsOf(collection);
        },
        { lifetimeSeconds: LIFETIME_SECONDS },
      ),
  },
  {
    id: "device.does_not_retry_expired",
    capability: "outcome_report",
    after: ["device.never_guesses"],
    quotes: [
      "A 409 with `status` equal to `expired` means the intent lapsed while the payment application was running; the sender must not retry, and the collection restarts from the cashier.",
    ],
    async run(world) {
      const { reports: all } = lapsedIn(world);
      const end = all.findIndex(({ answer }) => answer?.status === 409);
      const later = all.slice(end + 1);
      // The payment was approved late. The device may report that under a new key, until it has an answer.
      const late = later.find(
        (report) => report.json["outcome"] === "reported_success" && keyOf(report) !== keyOf(all[end]),
      );
      const tries = late === undefined ? [] : later.filter((report) => keyOf(report) === keyOf(late));
      const answered = tries.findIndex(isAnswered);
      const repeated = answered === -1 ? [] : tries.slice(answered + 1);
      expectSame("reports after 409", later.length - tries.length + repeated.length, 0);
    },
  },
];

function fetched(world: DeviceWorld, intentId: number): Observed | undefined {
  return world
    .requests(ASSIGNMENT)
    .find(
      ({ answer }) =>
        (answer?.json["assignment"] as { intent_id?: unknown } | null | undefined)?.intent_id === intentId,
    );
}
