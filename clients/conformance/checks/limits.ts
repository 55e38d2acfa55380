/** Throttles (one request per second for each credential), and rules for all answers to devices. */
import { setTimeout as delay } from "node:timers/promises";
import type { Check } from "../check.ts";
import { expectRefused, expectSame, expectStatus, expectThat, Mismatch } from "../expect.ts";
import type { Oddity, SuiteAnswer } from "../http.ts";
import type { World } from "../world.ts";

/** More than a throttle lets through at once. */
const BATCH = 15;
/** Each gateway counts alone and lets ten through, so this is enough for nine gateways that share the requests. */
const MOST_AT_ONCE = 105;

export const limitChecks: readonly Check[] = [
  {
    id: "throttle.per_credential",
    capability: "presence",
    after: ["display.idle"],
    quotes: [
      "It behaves exactly like production: same endpoints, throttles, refusal codes and kill switches.",
      "Throttles apply per credential and are the same in sandbox as in production.",
      "A device needing more than one request per second is misbehaving.",
    ],
    async run(world) {
      const hasty = world.display.unpaced();
      const answers: SuiteAnswer[] = [];
      const refused = () => answers.find(({ status }) => status === 429);
      while (refused() === undefined && answers.length < MOST_AT_ONCE)
        answers.push(...(await Promise.all(Array.from({ length: BATCH }, () => hasty.send("GET", "me/")))));
      const first = refused();
      const statuses = answers.map(({ status }) => status);
      if (first === undefined)
        throw new Mismatch(`answers to ${answers.length} requests`, "at least one 429", statuses);
      expectRefused(first, 429, "throttled");
      const retryAfter = first.headers.get("retry-after");
      expectThat("header `Retry-After`", Number(retryAfter) > 0, "seconds", retryAfter);
      expectStatus(await world.companion.send("GET", "me/"), 200);
    },
  },
];

/** The least time between the first and the last answer, so that the check notices a stopped clock. */
const CLOCK_SPAN_MS = 4_000;
/** Several gateway processes may answer, and their clocks may differ by this much. */
const CLOCK_APART_MS = 2_000;

/** Requests one answer of each kind, so that each of these checks also works when it runs alone. */
async function answersOf(world: World): Promise<void> {
  const { served } = world.wire;
  for (const path of ["me/", "assignment/"])
    if (!served.has(`GET ${path}`)) expectStatus(await world.companion.send("GET", path), 200);
  if (!served.has("POST heartbeat/")) await world.beat();
  if (!served.has("GET display/")) expectStatus(await world.display.send("GET", "display/"), 200);
  await world.anonymous.send("GET", "me/");
}

const judges =
  (kind: Oddity["kind"], what: string): Check["run"] =>
  async (world) => {
    await answersOf(world);
    const odd = world.wire.oddities.filter((each) => each.kind === kind).map(({ where }) => where);
    expectSame(what, [...new Set(odd)], []);
  };

/** These checks judge all answers to devices, so they come last. */
export const historyChecks: readonly Check[] = [
  {
    id: "answers.without_credential",
    capability: "enrollment",
    after: ["enroll.claims_code"],
    quotes: ["The credential is obtained by claiming an enrollment code at enroll and is returned only once."],
    run: judges("credential_repeated", "answers with the credential"),
  },
  {
    id: "answers.json",
    capability: "presence",
    after: ["enroll.claims_code"],
    quotes: ["Wire format is JSON over HTTPS."],
    run: judges("not_json", "answers to a device that are not `application/json`"),
  },
  {
    id: "answers.refusals_have_code",
    capability: "presence",
    after: ["enroll.claims_code"],
    quotes: ["Error body shape beyond the code and status fields: not shown."],
    run: judges("refusal_without_code", "refusals without a `code`"),
  },
  {
    id: "answers.not_cached",
    capability: "presence",
    after: ["enroll.claims_code"],
    // An answer from a cache between device and service may be an old state.
    quotes: ["Request header: `If-None-Match` (optional); the response supports ETag; 304 when unchanged."],
    run: judges("cacheable", "answers to a device that a cache may repeat without asking"),
  },
  {
    id: "throttle.served_at_pace",
    capability: "presence",
    after: ["enroll.claims_code"],
    quotes: ["A device needing more than one request per second is misbehaving."],
    run: judges("throttled_at_pace", "requests at the allowed pace that were throttled"),
  },
  {
    id: "answers.clock_runs",
    capability: "presence",
    after: ["enroll.claims_code"],
    quotes: ["server_time | string, date-time"],
    async run(world) {
      await answersOf(world);
      const { clock } = world.wire;
      const waitMs = (clock.firstAtMs ?? 0) + CLOCK_SPAN_MS - performance.now();
      if (waitMs > 0) {
        await delay(waitMs, undefined, { signal: world.wire.signal });
        world.wire.served.clear();
        await answersOf(world);
      }
      const apartMs = Math.max(0, Math.round(clock.leastMs - clock.mostMs));
      expectThat("`server_time` of all answers", apartMs < CLOCK_APART_MS, "one clock", `clocks ${apartMs} ms apart`);
    },
  },
];
