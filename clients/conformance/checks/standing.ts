/** Standing and kill switches: a blocked device or station may not act, and a cashier still collects cash. */
import { clientLimits } from "../../limits.ts";
import type { Check } from "../check.ts";
import { expectRefused, expectSame, expectStatus, objectOf } from "../expect.ts";
import type { World } from "../world.ts";

const capability = "kill_switches";
const REASON = { json: { reason: "Conformance suite" } };

/** The owner blocks the device or station before the check and unblocks it afterwards, also when the check fails. */
async function whileBlocked(world: World, [block, unblock]: readonly [string, string], check: () => Promise<void>) {
  expectStatus(await world.owner.change("POST", block, REASON), 200);
  try {
    await check();
  } finally {
    expectStatus(await world.owner.change("POST", unblock, REASON), 200);
  }
}

/** The service refuses the companion's polls with `code`, and the companion's snapshot has `code` as the reason. */
async function expectBlocked(world: World, code: string): Promise<void> {
  const fetch = () => world.fetchAssignment();
  expectRefused(await world.answered(403, 2_000, fetch), 403, code);
  const me = objectOf(expectStatus(await world.companion.send("GET", "me/"), 200));
  expectSame("`blocked_reason`", me["blocked_reason"], code);
}

async function expectDisplayBlocked(world: World, code: string): Promise<void> {
  const read = () => world.display.send("GET", "display/");
  expectRefused(await world.answered(403, 3_000, read), 403, code);
}

export const standingChecks: readonly Check[] = [
  {
    id: "standing.device_suspended",
    capability,
    after: ["cancel.by_cashier"],
    quotes: [
      "A device or station that lost standing is refused with 403 carrying a standing reason.",
      "blocked_reason | string | standing reason when the device or station lost standing",
    ],
    async run(world) {
      // A new credential has a new throttle, which does not count the requests of earlier checks.
      await world.enrollCompanionAgain();
      const path = `devices/${world.sandbox.companionId}`;
      await whileBlocked(world, [`${path}/suspend/`, `${path}/resume/`], async () => {
        await expectBlocked(world, "device_suspended");
        const beat = objectOf(expectStatus(await world.companion.send("POST", "heartbeat/", { json: {} }), 200));
        expectSame("`blocked_reason`", beat["blocked_reason"], "device_suspended");
        expectSame("`smart_pos` is offered", await world.routeOffered("smart_pos"), false);
      });
      const me = objectOf(expectStatus(await world.companion.send("GET", "me/"), 200));
      expectSame("`blocked_reason` of a resumed device", me["blocked_reason"], "");
    },
  },
  {
    id: "standing.report_refused",
    capability,
    after: ["standing.device_suspended"],
    quotes: ["403 | the standing reason | the device or station lost standing"],
    async run(world) {
      const collection = await world.collect("smart_pos");
      const { intentId } = collection;
      expectStatus(await world.fetchAssignment(), 200);
      const path = `devices/${world.sandbox.companionId}`;
      await whileBlocked(world, [`${path}/suspend/`, `${path}/resume/`], async () => {
        expectRefused(await world.report(intentId, "reported_success"), 403, "device_suspended");
        expectSame("`status` of the intent", (await world.intent(intentId))["status"], "presented");
      });
      const station = `stations/${world.sandbox.stationId}`;
      await whileBlocked(world, [`${station}/freeze/`, `${station}/unfreeze/`], async () => {
        const report = () => world.report(intentId, "reported_success");
        expectRefused(await world.answered(403, 2_000, report), 403, "station_frozen");
        expectSame("`status` of the intent", (await world.intent(intentId))["status"], "presented");
      });
      await world.discard(collection);
    },
  },
  {
    id: "kill_switch.device",
    capability,
    after: ["standing.report_refused"],
    quotes: ["Kill switches apply to devices"],
    async run(world) {
      const path = `devices/${world.sandbox.companionId}`;
      await whileBlocked(world, [`${path}/freeze/`, `${path}/unfreeze/`], () => expectBlocked(world, "device_frozen"));
    },
  },
  {
    id: "kill_switch.station",
    capability,
    after: ["standing.report_refused"],
    quotes: ["Kill switches apply to devices"],
    async run(world) {
      const path = `stations/${world.sandbox.stationId}`;
      await whileBlocked(world, [`${path}/freeze/`, `${path}/unfreeze/`], async () => {
        await expectBlocked(world, "station_frozen");
        await expectDisplayBlocked(world, "station_frozen");
        expectSame("`smart_pos` is offered", await world.routeOffered("smart_pos"), false);
        expectSame("`cash` is offered", await world.routeOffered("cash"), true);
        const { intentId } = await world.collect("cash");
        expectStatus(await world.decide(intentId, "attest"), 200);
        expectSame("`status` of the cash intent", (await world.intent(intentId))["status"], "succeeded");
      });
      await world.answered(200, clientLimits.conformancePollMs * 10, () => world.fetchAssignment());
    },
  },
  {
    id: "standing.station_suspended",
    capability,
    after: ["standing.report_refused"],
    quotes: [
      "A device or station that lost standing is refused with 403 carrying a standing reason.",
      "blocked_reason | string | standing reason when the device or station lost standing",
    ],
    async run(world) {
      const path = `stations/${world.sandbox.stationId}`;
      await whileBlocked(world, [`${path}/suspend/`, `${path}/resume/`], async () => {
        await expectBlocked(world, "station_suspended");
        await expectDisplayBlocked(world, "station_suspended");
      });
      await world.answered(200, clientLimits.conformancePollMs * 10, () => world.fetchAssignment());
    },
  },
];

/** These checks need no collection, so they run while the collection of another check lapses. */
export const displayStandingChecks: readonly Check[] = [
  {
    id: "standing.display_suspended",
    capability,
    after: ["display.total"],
    quotes: ["A device or station that lost standing is refused with 403 carrying a standing reason."],
    async run(world) {
      const path = `devices/${world.sandbox.displayId}`;
      await whileBlocked(world, [`${path}/suspend/`, `${path}/resume/`], () =>
        expectDisplayBlocked(world, "device_suspended"),
      );
    },
  },
];
