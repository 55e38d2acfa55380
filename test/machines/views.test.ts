/** The views as decision tables: what a display, a companion and a cashier see, row by row. */
import { describe, expect, it } from "vitest";
import { NO_KILL_SWITCHES } from "../../machines/standing.ts";
import type { StationState } from "../../machines/station/state.ts";
import { assignedIntent, assignmentView } from "../../machines/views/assignment.ts";
import { deviceSnapshotView } from "../../machines/views/device-snapshot.ts";
import { type DisplayView, displayView, rendersQrOn } from "../../machines/views/display.ts";
import { companionOffers, routeOffers } from "../../machines/views/routes.ts";
import {
  aCounter,
  aQrCounter,
  aServedCounter,
  COMPANION,
  COMPANION_DEVICE,
  DISPLAY,
  DISPLAY_DEVICE,
  ORDER,
  PROVIDER,
  QR,
  type Scenario,
  SECOND_COMPANION,
  START_MS,
  STATION_ID,
} from "./scenario.ts";

const paid = (): Scenario => aServedCounter().picks("cash").attests().settles();

describe("the display", () => {
  const SECOND_ORDER = { ...ORDER, orderId: 502, orderDisplayNumber: 8, amountMinor: "700" } as const;
  const THIRD_ORDER = { ...ORDER, orderId: 503, orderDisplayNumber: 9, amountMinor: "300" } as const;
  const ROWS: readonly [what: string, counter: () => Scenario, shown: string, holds: "until" | "always"][] = [
    ["nothing is open", () => aCounter(), "idle 0 0.00 EUR ''", "always"],
    ["an order is open", () => aCounter().order(), "total 7 12.50 EUR ''", "always"],
    ["an intent is created", () => aServedCounter().picks("smart_pos"), "total 7 12.50 EUR 'created'", "until"],
    ["it is presented", () => aServedCounter().picks("smart_pos").fetches(), "total 7 12.50 EUR 'presented'", "until"],
    [
      "an outcome is reported",
      () => aServedCounter().picks("smart_pos").reports("reported_declined"),
      "total 7 12.50 EUR 'processing'",
      "until",
    ],
    ["the seam settles it", () => aServedCounter().picks("cash").attests(), "total 7 12.50 EUR 'processing'", "always"],
    [
      "the seam settles it past the deadline",
      () => aServedCounter().picks("cash").attests().waits(3_600_000),
      "total 7 12.50 EUR 'processing'",
      "always",
    ],
    ["it is paid", () => paid(), "paid 7 12.50 EUR 'succeeded'", "until"],
    ["it was paid 7.999 s ago", () => paid().waits(7_999), "paid 7 12.50 EUR 'succeeded'", "until"],
    ["it was paid 8 s ago", () => paid().waits(8_000), "idle 0 0.00 EUR ''", "always"],
    ["it was paid, and the clock was set back", () => paid().waits(-7_200_000), "idle 0 0.00 EUR ''", "always"],
    [
      "it was paid, and the clock moved back a second",
      () => paid().waits(-1_000),
      "paid 7 12.50 EUR 'succeeded'",
      "until",
    ],
    [
      "an order follows the payment while the time of the station stands still",
      () => paid().order(SECOND_ORDER),
      "total 8 7.00 EUR ''",
      "always",
    ],
    [
      "the newest of two open orders is voided",
      () =>
        aCounter()
          .order()
          .order(SECOND_ORDER)
          .order({ ...SECOND_ORDER, status: "voided", revision: 2 }),
      "total 7 12.50 EUR ''",
      "always",
    ],
    [
      "the older of two open orders is voided",
      () => aCounter().order().order(SECOND_ORDER).order({ status: "voided", revision: 2 }),
      "total 8 7.00 EUR ''",
      "always",
    ],
    [
      "the newest of two open orders was paid, and the thank-you has ended",
      () =>
        aServedCounter().order(SECOND_ORDER).picks("cash", { order: SECOND_ORDER }).attests().settles().waits(8_000),
      "total 7 12.50 EUR ''",
      "always",
    ],
    [
      "an order is paid, and another one waits",
      () => aServedCounter().order(SECOND_ORDER).picks("cash", { order: SECOND_ORDER }).attests().settles(),
      "paid 8 7.00 EUR 'succeeded'",
      "until",
    ],
    [
      "an order is paid, two wait, and one of them is voided",
      () =>
        aServedCounter()
          .order(SECOND_ORDER)
          .order(THIRD_ORDER)
          .picks("cash", { order: THIRD_ORDER })
          .attests()
          .settles()
          .waits(1_000)
          .order({ ...SECOND_ORDER, status: "voided", revision: 2 }),
      "paid 9 3.00 EUR 'succeeded'",
      "until",
    ],
    ["an order follows the payment", () => paid().waits(1_000).order(SECOND_ORDER), "total 8 7.00 EUR ''", "always"],
    [
      "an order follows the payment and is voided",
      () =>
        aServedCounter()
          .order(SECOND_ORDER)
          .picks("cash", { order: SECOND_ORDER })
          .attests()
          .settles()
          .waits(1_000)
          .order(THIRD_ORDER)
          .order({ ...THIRD_ORDER, status: "voided", revision: 2 }),
      "total 7 12.50 EUR ''",
      "always",
    ],
    [
      "the next order was open before the payment",
      () => aServedCounter().picks("cash").order(SECOND_ORDER).waits(1_000).attests().settles(),
      "paid 7 12.50 EUR 'succeeded'",
      "until",
    ],
    [
      "the next order was open before the payment, and the thank-you has ended",
      () => aServedCounter().picks("cash").order(SECOND_ORDER).waits(1_000).attests().settles().waits(8_000),
      "total 8 7.00 EUR ''",
      "always",
    ],
    ["it is cancelled", () => aServedCounter().picks("cash").cancels(), "total 7 12.50 EUR ''", "always"],
    [
      "its deadline has passed and nothing is committed",
      () => aServedCounter().picks("cash").waits(180_000),
      "total 7 12.50 EUR ''",
      "always",
    ],
    [
      "the order is voided",
      () => aCounter().order().order({ status: "voided", revision: 2 }),
      "idle 0 0.00 EUR ''",
      "always",
    ],
    [
      "the order changed while it is collected",
      () => aServedCounter().picks("cash").order({ amountMinor: "1500", revision: 2 }),
      "total 7 12.50 EUR 'created'",
      "until",
    ],
    [
      "the currency has no decimals",
      () => aCounter().order({ currency: "JPY", amountMinor: "1250" }),
      "total 7 1250 JPY ''",
      "always",
    ],
  ];

  it.each(ROWS)("%s", (_what, build, shown, holds) => {
    const counter = build();
    const { view, validUntilMs } = displayView(counter.station, counter.atMs, true);
    const { state, order_display_number: number, amount, currency, intent_status: status } = view;
    expect(`${state} ${number} ${amount} ${currency} '${status}'`).toBe(shown);
    expect(validUntilMs === null ? "always" : "until").toBe(holds);
    expect(view.qr_payload).toBe("");
  });

  it("a view that changes without an event: it is valid until exactly that moment", () => {
    const counter = paid();
    const { validUntilMs } = displayView(counter.station, counter.atMs, true);
    expect(validUntilMs).toBe(counter.atMs + 8_000);
    expect(displayView(counter.station, (validUntilMs ?? 0) - 1, true).view.state).toBe("paid");
    expect(displayView(counter.station, validUntilMs ?? 0, true).view.state).toBe("idle");
  });
});

describe("the display of a QR collection", () => {
  const presented = (): Scenario => aQrCounter().picks("dynamic_qr").givesQr();
  const qrDisplay = { ...DISPLAY_DEVICE, capabilities: ["display_total", "qr_dynamic_present"], revision: 2 } as const;
  const ROWS: readonly [what: string, counter: () => Scenario, withQr: string, without: string][] = [
    ["the provider is asked", () => aQrCounter().picks("dynamic_qr"), "total", "total"],
    ["the QR is there", () => presented(), "qr", "total"],
    ["the QR is there, in a freeze of the platform", () => presented().freezes({ platform: true }), "total", "total"],
    [
      "the QR is there, and its station is frozen",
      () => presented().freezes({ stations: new Set([STATION_ID]) }),
      "total",
      "total",
    ],
    ["its provider is frozen", () => presented().freezes({ providers: new Set([PROVIDER.id]) }), "total", "total"],
    ["another provider is frozen", () => presented().freezes({ providers: new Set([82]) }), "qr", "total"],
    ["its deadline has passed", () => presented().waits(180_000), "total", "total"],
    ["the provider confirmed", () => presented().confirms(), "total", "total"],
    ["the seam refused", () => presented().confirms().refusesToSettle(), "total", "total"],
    ["it is paid", () => presented().confirms().settles(), "paid", "paid"],
    ["it is cancelled", () => presented().cancels(), "total", "total"],
  ];
  it.each(ROWS)("%s", (_what, build, withQr, without) => {
    const shownOn = (counter: Scenario): DisplayView => {
      const device = counter.device(DISPLAY);
      if (device === undefined) return expect.unreachable();
      const rendersQr = rendersQrOn(counter.station, device, counter.switches);
      return displayView(counter.station, counter.atMs, rendersQr).view;
    };
    const plain = build();
    const capable = build().describesDevice(qrDisplay);
    expect([shownOn(capable).state, shownOn(plain).state]).toEqual([withQr, without]);
    expect(shownOn(capable).qr_payload).toBe(withQr === "qr" ? QR : "");
    expect(shownOn(plain).qr_payload).toBe("");
  });
});

describe("the assignment", () => {
  it("has every field of the contract, and no other", () => {
    const counter = aServedCounter().picks("smart_pos");
    const intent = assignedIntent(counter.station, COMPANION.id, counter.atMs);
    expect(intent === null ? null : assignmentView(intent)).toEqual({
      intent_id: 1_001,
      intent_display_number: 1,
      order_display_number: 7,
      station_name: "Counter 1",
      amount: "12.50",
      currency: "EUR",
      status: "created",
      handoff_target: "posapp://collect/one",
      expires_at: new Date(counter.atMs + 180_000).toISOString(),
    });
  });

  const ROWS: readonly [what: string, counter: () => Scenario, status: string | null][] = [
    ["nothing is collected", () => aServedCounter(), null],
    ["it was created", () => aServedCounter().picks("smart_pos"), "created"],
    ["it was presented", () => aServedCounter().picks("smart_pos").fetches(), "presented"],
    ["it was reported", () => aServedCounter().picks("smart_pos").reports("reported_unknown"), "processing"],
    [
      "the seam is settling it",
      () => aServedCounter().picks("smart_pos").reports("reported_success").attests(),
      "processing",
    ],
    ["it has expired, uncommitted", () => aServedCounter().picks("smart_pos").waits(180_000), null],
    ["it was cancelled", () => aServedCounter().picks("smart_pos").cancels(), null],
    ["another route is collected", () => aServedCounter().picks("cash"), null],
  ];
  it.each(ROWS)("when %s", (_what, build, status) => {
    const counter = build();
    const intent = assignedIntent(counter.station, COMPANION.id, counter.atMs);
    expect(intent === null ? null : assignmentView(intent).status).toBe(status);
    expect(assignedIntent(counter.station, SECOND_COMPANION.id, counter.atMs)).toBeNull();
  });
});

describe("the device snapshot", () => {
  it("has every field of the contract except server_time, and no other", () => {
    expect(deviceSnapshotView(aCounter().station, COMPANION.id, NO_KILL_SWITCHES)).toEqual({
      device_id: 701,
      name: "Companion",
      kind: "smart_pos_companion",
      capabilities: ["handoff_present", "outcome_report"],
      status: "active",
      station_name: "Counter 1",
      station_status: "active",
      handoff_target: "posapp://collect/one",
      blocked_reason: "",
    });
  });

  it("a device that may not act: the snapshot names the reason", () => {
    const suspended = aCounter().describesStation({ status: "suspended", revision: 2 });
    expect(deviceSnapshotView(suspended.station, DISPLAY.id, NO_KILL_SWITCHES)).toMatchObject({
      station_status: "suspended",
      blocked_reason: "station_suspended",
      handoff_target: "",
    });
  });

  it("an unknown device: no snapshot", () => {
    expect(deviceSnapshotView(aCounter().station, 999, NO_KILL_SWITCHES)).toBeUndefined();
  });
});

const offered = ({ station, switches }: Scenario): string =>
  routeOffers(station, switches)
    .map(({ route, reason }) => `${route}:${reason ?? "yes"}`)
    .join(" ");

describe("the routes offered", () => {
  const second = { ...COMPANION_DEVICE, deviceId: SECOND_COMPANION.id };
  const suspendedCompanion = { ...COMPANION_DEVICE, status: "suspended", revision: 2 } as const;

  const ROWS: readonly [what: string, counter: () => Scenario, offers: string][] = [
    [
      "a live companion",
      () => aCounter(),
      "smart_pos:yes dynamic_qr:provider_not_configured attested_terminal:yes cash:yes",
    ],
    [
      "a silent companion",
      () => aCounter().noticesSilence(),
      "smart_pos:device_offline dynamic_qr:provider_not_configured attested_terminal:yes cash:yes",
    ],
    [
      "a companion that sends heartbeats again",
      () => aCounter().noticesSilence().waits(30_000).receivesHeartbeat(),
      "smart_pos:yes dynamic_qr:provider_not_configured attested_terminal:yes cash:yes",
    ],
    [
      "a suspended companion",
      () => aCounter().describesDevice(suspendedCompanion),
      "smart_pos:device_suspended dynamic_qr:provider_not_configured attested_terminal:yes cash:yes",
    ],
    [
      "a suspended companion and a live one",
      () => aCounter().describesDevice(suspendedCompanion).describesDevice(second).receivesHeartbeat(SECOND_COMPANION),
      "smart_pos:yes dynamic_qr:provider_not_configured attested_terminal:yes cash:yes",
    ],
    [
      "a live companion that is suspended and one that was never online",
      () => aCounter().describesDevice(suspendedCompanion).describesDevice(second),
      "smart_pos:device_suspended dynamic_qr:provider_not_configured attested_terminal:yes cash:yes",
    ],
    [
      "a silent companion that is suspended and one that was never online",
      () => aCounter().noticesSilence().describesDevice(suspendedCompanion).describesDevice(second),
      "smart_pos:device_offline dynamic_qr:provider_not_configured attested_terminal:yes cash:yes",
    ],
    [
      "a live companion that is suspended and one that has gone offline",
      () =>
        aCounter()
          .describesDevice(suspendedCompanion)
          .describesDevice(second)
          .receivesHeartbeat(SECOND_COMPANION)
          .noticesSilence(SECOND_COMPANION),
      "smart_pos:device_offline dynamic_qr:provider_not_configured attested_terminal:yes cash:yes",
    ],
    [
      "a silent companion that is suspended and one that has yet to enroll",
      () =>
        aCounter()
          .noticesSilence()
          .describesDevice(suspendedCompanion)
          .describesDevice({ ...second, status: "pending" }),
      "smart_pos:device_suspended dynamic_qr:provider_not_configured attested_terminal:yes cash:yes",
    ],
    [
      "a companion that has yet to enroll and one without the capabilities",
      () =>
        aCounter()
          .describesDevice({ ...COMPANION_DEVICE, status: "pending", revision: 2 })
          .describesDevice({ ...second, capabilities: ["handoff_present"] }),
      "smart_pos:device_not_enrolled dynamic_qr:provider_not_configured attested_terminal:yes cash:yes",
    ],
    [
      "a companion without the capabilities",
      () => aCounter().describesDevice({ ...COMPANION_DEVICE, capabilities: ["handoff_present"], revision: 2 }),
      "smart_pos:capability_missing dynamic_qr:provider_not_configured attested_terminal:yes cash:yes",
    ],
    [
      "a display that claims a companion's capabilities",
      () =>
        aCounter()
          .describesDevice({ ...COMPANION_DEVICE, status: "revoked", revision: 2 })
          .describesDevice({ ...DISPLAY_DEVICE, capabilities: ["handoff_present", "outcome_report"], revision: 2 })
          .receivesHeartbeat(DISPLAY),
      "smart_pos:no_companion dynamic_qr:provider_not_configured attested_terminal:yes cash:yes",
    ],
    [
      "a frozen companion",
      () => aCounter().freezes({ devices: new Set([COMPANION.id]) }),
      "smart_pos:device_frozen dynamic_qr:provider_not_configured attested_terminal:yes cash:yes",
    ],
    ["a provider", () => aQrCounter(), "smart_pos:yes dynamic_qr:yes attested_terminal:yes cash:yes"],
    [
      "a frozen provider",
      () => aQrCounter().freezes({ providers: new Set([PROVIDER.id]) }),
      "smart_pos:yes dynamic_qr:provider_frozen attested_terminal:yes cash:yes",
    ],
    [
      "a provider and a frozen organization",
      () => aQrCounter().freezes({ organizations: new Set([11]), providers: new Set([PROVIDER.id]) }),
      "smart_pos:organization_frozen dynamic_qr:organization_frozen attested_terminal:organization_frozen cash:yes",
    ],
    [
      "a platform freeze",
      () => aCounter().freezes({ platform: true }),
      "smart_pos:platform_frozen dynamic_qr:platform_frozen attested_terminal:platform_frozen cash:yes",
    ],
    [
      "a suspended station",
      () => aCounter().describesStation({ status: "suspended", revision: 2 }),
      "smart_pos:station_suspended dynamic_qr:station_suspended attested_terminal:station_suspended cash:station_suspended",
    ],
    [
      "a suspended station under a freeze",
      () => aCounter().describesStation({ status: "suspended", revision: 2 }).freezes({ platform: true }),
      "smart_pos:station_suspended dynamic_qr:station_suspended attested_terminal:station_suspended cash:station_suspended",
    ],
  ];
  it.each(ROWS)("%s", (_what, build, offers) => {
    expect(offered(build())).toBe(offers);
  });

  it("all companions silent: the offer has since when, and companions that may not act do not count", () => {
    const counter = aCounter().waits(20_000).describesDevice(second).receivesHeartbeat(SECOND_COMPANION).waits(10_000);
    counter.noticesSilence(COMPANION, START_MS + 500);
    const sinceMs = counter.atMs;
    counter.describesDevice({ ...second, status: "suspended", revision: 2 });
    expect(routeOffers(counter.station, NO_KILL_SWITCHES)[0]).toEqual({
      route: "smart_pos",
      reason: "device_offline",
      sinceMs,
    });
  });

  it("two silent companions, in either order: the offer has the beginning of the later silence", () => {
    const counter = aCounter().waits(20_000).describesDevice(second).receivesHeartbeat(SECOND_COMPANION).waits(10_000);
    const earlierMs = counter.noticesSilence(COMPANION, START_MS + 500).atMs;
    const laterMs = counter.waits(60_000).noticesSilence(SECOND_COMPANION).atMs;
    const offerOf = (devices: StationState["devices"]) =>
      routeOffers({ ...counter.station, devices }, NO_KILL_SWITCHES)[0];
    const { devices } = counter.station;
    expect(devices.flatMap(({ liveness }) => liveness.sinceMs ?? [])).toEqual([earlierMs, laterMs]);
    for (const listed of [devices, devices.toReversed()])
      expect(offerOf(listed)).toMatchObject({ reason: "device_offline", sinceMs: laterMs });
  });

  it("a companion that never sent a heartbeat: the offer has no beginning of the silence", () => {
    const never = aCounter()
      .describesDevice({ ...COMPANION_DEVICE, status: "revoked", revision: 2 })
      .describesDevice(second);
    expect(routeOffers(never.station, NO_KILL_SWITCHES)[0]).toMatchObject({ reason: "device_offline", sinceMs: null });
  });

  it("several companions: each has its reason, or none when it can take a collection", () => {
    const counter = aCounter()
      .describesDevice(suspendedCompanion)
      .describesDevice(second)
      .describesDevice({ ...second, deviceId: 704, status: "pending" })
      .describesDevice({ ...second, deviceId: 705, capabilities: [] })
      .describesDevice({ ...second, deviceId: 706 })
      .receivesHeartbeat({ kind: "device", id: 706 })
      .freezes({ devices: new Set([705]) });
    const reasons = companionOffers(counter.station, counter.switches).map(({ device, reason }) => [
      device.deviceId,
      reason,
    ]);
    expect(reasons).toEqual([
      [701, "device_suspended"],
      [703, "device_offline"],
      [704, "device_not_enrolled"],
      [705, "capability_missing"],
      [706, null],
    ]);
  });
});
