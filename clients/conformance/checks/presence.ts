/** The snapshot of a device, its heartbeat, and the state of a silent device. */

import { clientLimits } from "../../limits.ts";
import { type Check, perRun } from "../check.ts";
import { expectField, expectNow, expectRefused, expectSame, expectStatus, expectThat, objectOf } from "../expect.ts";
import type { World } from "../world.ts";

const capability = "presence";
const FIELDS = {
  device_id: "integer",
  name: "string",
  kind: "string",
  capabilities: "strings",
  status: "string",
  station_name: "string",
  station_status: "string",
  handoff_target: "string",
  blocked_reason: "string",
  server_time: "date-time",
} as const;
const ROWS: Readonly<Record<keyof typeof FIELDS, string>> = {
  device_id: "device_id | integer",
  name: "name | string",
  kind: "kind | string",
  capabilities:
    "capabilities | array of string | includes `qr_dynamic_present` for displays that may render QR payloads",
  status: "status | string",
  station_name: "station_name | string",
  station_status: "station_status | string",
  handoff_target:
    "handoff_target | string | opaque launch reference configured by the owner; never parsed, matched or branched on by the service; may be blank",
  blocked_reason: "blocked_reason | string | standing reason when the device or station lost standing",
  server_time: "server_time | string, date-time",
};

/** A long pause between polls, so that the throttle allows the next requests. */
const POLL_MS = 4_000;

const snapshotsOf = async (world: World): Promise<readonly [string, Record<string, unknown>][]> => [
  ["enroll", objectOf(world.enrollment("companion").answer, "device")],
  ["heartbeat", objectOf(await world.beat())],
  ["me", objectOf(expectStatus(await world.companion.send("GET", "me/"), 200))],
];

const fieldChecks: readonly Check[] = (Object.keys(FIELDS) as (keyof typeof FIELDS)[]).map((field) => ({
  id: `snapshot.${field}`,
  capability,
  after: ["snapshot.returned"],
  quotes: [ROWS[field], "Returned by enroll (nested as `device`), heartbeat, and `me`. All fields required."],
  run: async (world) => {
    for (const [, snapshot] of takenIn(world).snapshots) expectField(snapshot, field, FIELDS[field]);
  },
}));
/** The three snapshots of `snapshot.returned`, so that the check of a field needs no further request. */
const takenIn = perRun(() => ({ snapshots: [] as readonly (readonly [string, Record<string, unknown>])[] }));

export const presenceChecks: readonly Check[] = [
  {
    id: "sandbox.parts",
    capability: "enrollment",
    after: ["enroll.claims_code"],
    quotes: [
      "A sandbox station can be seeded (station, customer display, smart POS companion, a cashier holding the payment permission, a provider config in its test environment).",
      "The restaurant owner registers the device against exactly one station in the owner back-office application.",
      "Device kinds that appear: a smart POS companion (reads assignments, reports outcomes) and a customer display (reads display state).",
    ],
    async run(world) {
      const { displayId, companionId, stationId } = world.sandbox;
      for (const [deviceId, kind] of [
        [displayId, "customer_display"],
        [companionId, "smart_pos_companion"],
      ] as const) {
        const device = objectOf(expectStatus(await world.owner.send("GET", `devices/${deviceId}/`), 200));
        expectSame("`kind` of the device", device["kind"], kind);
        expectSame("`station_id` of the device", device["station_id"], stationId);
      }
      const { user } = objectOf(expectStatus(await world.cashier.send("GET", "session/"), 200)) as { user?: unknown };
      const { permissions } = (user ?? {}) as { permissions?: unknown };
      expectThat(
        "`permissions` of the cashier",
        Array.isArray(permissions) && permissions.includes("payments.collect"),
        "`payments.collect`",
        permissions,
      );
      const { sandbox_id: _, config_id: configId } = objectOf(
        expectStatus(await world.owner.send("GET", `sandboxes/${world.sandbox.sandboxId}/`), 200),
      );
      const { provider_configs: configs } = objectOf(
        expectStatus(await world.owner.send("GET", "provider-configs/?limit=500"), 200),
      ) as { provider_configs?: { config_id: unknown; mode: unknown }[] };
      const config = configs?.find((each) => each.config_id === configId);
      expectSame("`mode` of the provider config", config?.mode, "test");
    },
  },
  {
    id: "snapshot.returned",
    capability,
    after: ["enroll.claims_code"],
    quotes: [
      "Returned by enroll (nested as `device`), heartbeat, and `me`.",
      "Response JSON: Device snapshot (the device's own current snapshot).",
      "No body. Response JSON: Device snapshot.",
      "payments_device_heartbeat | POST | /api/payments/v1/devices/heartbeat/ | device credential",
      "payments_device_self | GET | /api/payments/v1/devices/me/ | device credential",
    ],
    async run(world) {
      takenIn(world).snapshots = await snapshotsOf(world);
      for (const [, snapshot] of takenIn(world).snapshots)
        expectSame("`device_id`", snapshot["device_id"], world.sandbox.companionId);
    },
  },
  ...fieldChecks,
  {
    id: "snapshot.clock",
    capability,
    after: ["snapshot.returned"],
    quotes: ["server_time | string, date-time"],
    async run(world) {
      for (const [, snapshot] of takenIn(world).snapshots) expectNow("`server_time`", snapshot["server_time"]);
    },
  },
  {
    id: "snapshot.owner_truth",
    capability,
    after: ["snapshot.returned"],
    quotes: [
      "Response JSON: Device snapshot (the device's own current snapshot).",
      "The restaurant owner registers the device against exactly one station in the owner back-office application.",
    ],
    async run(world) {
      const { companionId, displayId, stationId } = world.sandbox;
      const read = async (path: string) => objectOf(expectStatus(await world.owner.send("GET", path), 200));
      const station = await read(`stations/${stationId}/`);
      const expectShown = async (snapshot: Record<string, unknown>, deviceId: number): Promise<void> => {
        const device = await read(`devices/${deviceId}/`);
        for (const name of ["device_id", "name", "kind", "capabilities", "status"])
          expectSame(`\`${name}\` of the device`, snapshot[name], device[name]);
        expectSame("`station_name`", snapshot["station_name"], station["name"]);
        expectSame("`station_status`", snapshot["station_status"], station["status"]);
        expectSame("`blocked_reason` of a device in good standing", snapshot["blocked_reason"], "");
      };
      for (const [, snapshot] of takenIn(world).snapshots) await expectShown(snapshot, companionId);
      await expectShown(objectOf(world.enrollment("display").answer, "device"), displayId);
    },
  },
  {
    id: "snapshot.handoff_target_opaque",
    capability,
    after: ["snapshot.returned"],
    quotes: [
      "handoff_target | string | opaque launch reference configured by the owner; never parsed, matched or branched on by the service; may be blank",
      "The owner declares the device capabilities and, for a smart POS companion, the launch reference of the co-resident payment application (exposed as `handoff_target`).",
    ],
    async run(world) {
      const configure = async (target: string): Promise<void> => {
        const path = `devices/${world.sandbox.companionId}/`;
        expectStatus(await world.owner.change("PATCH", path, { json: { handoff_target: target } }), 200);
      };
      await world.beat();
      await configure("");
      expectSame("`handoff_target`", objectOf(await world.companion.send("GET", "me/"))["handoff_target"], "");
      expectSame("`smart_pos` is offered with a blank launch reference", await world.routeOffered("smart_pos"), true);
      const target = `pay+test://x?a=1&b=${encodeURIComponent("ü {}<>\"'")}#${Date.now()}`;
      await configure(target);
      expectSame("`handoff_target`", objectOf(await world.companion.send("GET", "me/"))["handoff_target"], target);
      expectSame("`handoff_target` of the heartbeat", objectOf(await world.beat())["handoff_target"], target);
    },
  },
  {
    id: "presence.live_offered",
    capability,
    after: ["enroll.claims_code"],
    quotes: [
      "a live handoff device is attached to the station (live = actively heartbeating)",
      "device sends a heartbeat | routes are restored",
      "The device then checks in (heartbeat), polls for work, acts, and reports.",
    ],
    async run(world) {
      await world.beat();
      const read = () => world.routeOffered("smart_pos");
      await world.until("`smart_pos` is offered", 2_000, read, (isOffered) => isOffered);
    },
  },
];

/** These run at the end: 25 seconds of silence pass while other checks run. */
export const silenceChecks: readonly Check[] = [
  {
    id: "presence.silent_withdrawn",
    capability,
    after: ["presence.live_offered"],
    quotes: [
      "device goes silent (no heartbeat) | device treated as offline; routes needing it are withdrawn from the cashier",
      "Call on a timer; a silent device is treated as offline.",
      "A device that stops sending heartbeats is treated as offline and the routes that need it stop being offered to the cashier; a later heartbeat restores them.",
    ],
    async run(world) {
      let polledAtMs = 0;
      const polls = ["me/", "assignment/"];
      const read = async () => {
        // A poll is no heartbeat: a device that only polls is silent.
        if (performance.now() - polledAtMs > POLL_MS) {
          const [next = ""] = polls;
          expectStatus(await world.companion.send("GET", next), 200);
          polls.push(...polls.splice(0, 1));
          polledAtMs = performance.now();
        }
        return world.routeOffered("smart_pos");
      };
      await world.until("`smart_pos` is withdrawn", clientLimits.conformanceSilenceMs, read, (isOffered) => !isOffered);
      expectSame("`cash` is offered", await world.routeOffered("cash"), true);
    },
  },
];

/** These run after the lapsed collection: a station has one collection at a time. */
export const offlineChecks: readonly Check[] = [
  {
    id: "presence.silent_not_collected",
    capability,
    after: ["presence.silent_withdrawn"],
    quotes: [
      "(none) | cashier picks the smart POS route | a live handoff device is attached to the station (live = actively heartbeating) | created | intent becomes available to the device as an assignment",
    ],
    async run(world) {
      const { orderId } = await world.openOrder();
      expectRefused(await world.createIntent("smart_pos", orderId), 409);
      await world.voidOrder(orderId);
    },
  },
  {
    id: "presence.heartbeat_restores",
    capability,
    after: ["presence.silent_withdrawn"],
    quotes: [
      "device sends a heartbeat | routes are restored",
      "A device that stops sending heartbeats is treated as offline and the routes that need it stop being offered to the cashier; a later heartbeat restores them.",
    ],
    async run(world) {
      await world.beat();
      const read = () => world.routeOffered("smart_pos");
      await world.until("`smart_pos` is offered again", 2_000, read, (isOffered) => isOffered);
    },
  },
];

/** These run at the end, when the companion's throttle allows their requests. */
export const heartbeatChecks: readonly Check[] = [
  {
    id: "heartbeat.summary",
    capability,
    after: ["enroll.claims_code"],
    quotes: ["Request JSON: `summary` (object with arbitrary keys and values; optional)."],
    async run(world) {
      const summary = { battery: 0.5, ключ: [1, { nested: null }], name: "Another", status: "revoked", device_id: 0 };
      const { name, status, device_id } = objectOf(
        expectStatus(await world.companion.send("POST", "heartbeat/", { json: { summary } }), 200),
      );
      const known = objectOf(expectStatus(await world.companion.send("POST", "heartbeat/"), 200));
      const expected = { name: known["name"], status: known["status"], device_id: world.sandbox.companionId };
      expectSame("the snapshot after a summary that names its fields", { name, status, device_id }, expected);
      expectStatus(await world.companion.send("POST", "heartbeat/", { json: { summary: "text" } }), 400);
    },
  },
  {
    id: "heartbeat.content_types",
    capability,
    after: ["enroll.claims_code"],
    quotes: ["Other content types for the body are also accepted as form or JSON."],
    async run(world) {
      const form = {
        body: `summary=${encodeURIComponent('{"battery":1}')}`,
        headers: { "content-type": "application/x-www-form-urlencoded" },
      };
      expectStatus(await world.companion.send("POST", "heartbeat/", form), 200);
      const parts = '--b\r\ncontent-disposition: form-data; name="summary"\r\n\r\n{"battery":1}\r\n--b--\r\n';
      const multipart = { body: parts, headers: { "content-type": "multipart/form-data; boundary=b" } };
      expectStatus(await world.companion.send("POST", "heartbeat/", multipart), 200);
    },
  },
];
