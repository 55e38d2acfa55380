/** Heartbeats, pace, and the device's behaviour while the service refuses it. */
import { expectSame, expectThat, Mismatch } from "../../expect.ts";
import type { DeviceCheck } from "../device-check.ts";
import type { DeviceWorld } from "../device-world.ts";
import type { Observed } from "../observer.ts";

const capability = "presence";
const HEARTBEAT = "heartbeat/";
/** The longest gap between heartbeats. A device is offline after 25 seconds without one. */
const GAP_MS = 20_000;
const FIRST_MS = 12_000;
/** The limit is "1 request a second, 10 at once", but requests that the device sent apart may arrive together. */
const BURST = 12;
/** A device with twice its pace has used the burst by then. A run of few checks waits for the rest of this time. */
const PACE_MS = 15_000;
const RETRY_AFTER_SECONDS = 4;
/** The clocks of device and suite may differ slightly in speed. */
const EARLY_MS = 100;
/** A blocked device tries again every 10 seconds. */
const BACK_MS = 15_000;

const isServed = ({ answer }: Observed): boolean => answer?.status === 200 || answer?.status === 304;

/** Refuses one poll, and expects that the next one does not arrive too early. */
async function waitsAsAsked(world: DeviceWorld, status: 429 | 503, code: string): Promise<void> {
  const beganAtMs = performance.now();
  world.observer.interfere(world.polled, { kind: "refuse", status, code, retryAfterSeconds: RETRY_AFTER_SECONDS });
  const isRefused = ({ answer }: Observed): boolean => answer?.status === status;
  const refused = await world.until(`a poll is answered ${status}`, () =>
    world.requests(world.polled, beganAtMs).find(isRefused),
  );
  const next = await world.until("the device polls again", () =>
    world.requests(world.polled, refused.atMs).find((each) => each !== refused),
  );
  const gapMs = next.atMs - (refused.answer?.atMs ?? 0);
  const atLeastMs = RETRY_AFTER_SECONDS * 1_000 - EARLY_MS;
  expectThat(
    "milliseconds until the next poll",
    gapMs >= atLeastMs,
    `at least ${RETRY_AFTER_SECONDS} s`,
    Math.round(gapMs),
  );
}

export const presenceChecks: readonly DeviceCheck[] = [
  {
    id: "device.sends_heartbeats",
    capability,
    after: ["device.claims_code_once"],
    quotes: ["The device then checks in (heartbeat), polls for work, acts, and reports."],
    async run(world) {
      const read = () => world.requests(HEARTBEAT).find(({ answer }) => answer?.status === 200);
      await world.until("the device sends a heartbeat", read, FIRST_MS);
    },
  },
  {
    id: "device.waits_when_throttled",
    capability,
    after: ["device.uses_credential"],
    quotes: ["429 | `throttled` | wait as long as `Retry-After` requests"],
    run: (world) => waitsAsAsked(world, 429, "throttled"),
  },
  {
    id: "device.waits_when_unavailable",
    capability,
    after: ["device.uses_credential"],
    quotes: ["503 | `busy`, `storage_low`, `replica_stale` | nothing was done; wait as long as `Retry-After` requests"],
    run: (world) => waitsAsAsked(world, 503, "busy"),
  },
];

/** These run late: after them, a device that does not recover could not pass the other checks. */
export const standingChecks: readonly DeviceCheck[] = [
  {
    id: "device.comes_back_unblocked",
    capability,
    after: ["device.uses_credential"],
    quotes: [
      "A device or station that lost standing is refused with 403 carrying a standing reason.",
      "show the reason, keep sending heartbeats, try again every 10 seconds.",
    ],
    async run(world) {
      const beganAtMs = performance.now();
      await world.whileSuspended(async () => {
        await world.until("the device receives 403", () =>
          world.requests(world.polled, beganAtMs).find(({ answer }) => answer?.status === 403),
        );
      });
      const resumedAtMs = performance.now();
      const read = () => world.requests(world.polled, resumedAtMs).find(isServed);
      await world.until("the device polls again once it is resumed", read, Math.max(BACK_MS, world.device.stepMs));
    },
  },
];

/** These are about the whole run, so they are last. */
export const historyChecks: readonly DeviceCheck[] = [
  {
    id: "device.heartbeats_on_a_timer",
    capability,
    after: ["device.sends_heartbeats"],
    quotes: [
      "Call on a timer; a silent device is treated as offline.",
      "Heartbeats go on at their interval, whatever other requests do: also while those fail or wait.",
    ],
    async run(world) {
      // With a credential that has ended, a device sends no more heartbeats until it has a new one.
      const beats = world
        .requests(HEARTBEAT)
        .filter(({ answer }) => answer?.status !== 401)
        .map(({ atMs }) => atMs);
      const ends = [...beats, performance.now()];
      for (const [nth, fromMs] of beats.entries()) {
        const toMs = ends[nth + 1] ?? fromMs;
        const excusedMs = world.absences
          .map((absence) => Math.min(absence.toMs, toMs) - Math.max(absence.fromMs, fromMs))
          .reduce((sum, ms) => sum + Math.max(ms, 0), 0);
        const gapMs = toMs - fromMs - excusedMs;
        expectThat("seconds between two heartbeats", gapMs <= GAP_MS, "at most 20", Math.round(gapMs / 1_000));
      }
    },
  },
  {
    id: "device.keeps_pace",
    capability,
    after: ["device.uses_credential"],
    quotes: [
      "A device needing more than one request per second is misbehaving.",
      "One credential may make 1 request a second, 10 at once.",
    ],
    async run(world) {
      await world.watch(Math.max(0, world.startedAtMs + PACE_MS - performance.now()));
      let left = BURST;
      let countedAtMs = world.startedAtMs;
      for (const { atMs, operation, served } of world.requests()) {
        if (operation === "enroll/") continue;
        left = Math.min(BURST, left + (atMs - countedAtMs) / 1_000) - 1;
        countedAtMs = atMs;
        if (left < 0) throw new Mismatch("pace of the requests", "one in a second, ten at once", "more");
        expectSame("refusals by the throttle of the service", served?.status === 429, false);
      }
    },
  },
];
