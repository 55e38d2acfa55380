/** The situations in which a station receives a command, and one command of each type. */
import type { Actor } from "../../machines/actor.ts";
import type { StationCommand, StationCommandType } from "../../machines/station/command.ts";
import type { StationReply } from "../../machines/station/reply.ts";
import {
  aCounter,
  aQrCounter,
  aServedCounter,
  CASEY,
  CASEYS,
  COMPANION,
  COMPANION_DEVICE,
  ORDER,
  OWNER,
  PROVIDER,
  QR,
  REGISTRY,
  ROBIN,
  Scenario,
  SETTLEMENT,
  STATION,
  STATION_ID,
  SYSTEM,
} from "./scenario.ts";

/** The names that Casey, the companion and the provider use. */
export const SITUATIONS = {
  /** The station was never described. */
  unknown: () => new Scenario(),
  /** The lease is free; an order is open. */
  unattended: () => aCounter().order(),
  /** Casey holds the lease; an order is open; no collection is active. */
  served: () => aServedCounter(),
  /** Another cashier holds the lease and has a reported intent. */
  elsewhere: () => aCounter().order().leased(ROBIN).picks("smart_pos", { by: ROBIN }).reports("reported_success"),
  created: () => aServedCounter().picks("smart_pos"),
  presented: () => aServedCounter().picks("smart_pos").fetches(),
  processing: () => aServedCounter().picks("smart_pos").fetches().reports("reported_success"),
  settling: () => aServedCounter().picks("smart_pos").fetches().reports("reported_success").attests(),
  succeeded: () => aServedCounter().picks("smart_pos").fetches().reports("reported_success").attests().settles(),
  cancelled: () => aServedCounter().picks("smart_pos").cancels(),
  expired: () => aServedCounter().picks("smart_pos").waits(180_000).ticks(),
  /** The deadline has passed, and the station has not committed it yet. */
  overdue: () => aServedCounter().picks("smart_pos").waits(180_000),
  /** The companion is silent. */
  silent: () => aServedCounter().noticesSilence(COMPANION),
  /** The owner suspended the companion after it had reported. */
  device_suspended: () =>
    aServedCounter()
      .picks("smart_pos")
      .reports("reported_success")
      .describesDevice({ ...COMPANION_DEVICE, status: "suspended", revision: 2 }),
  /** The owner suspended the station after the companion had reported. */
  station_suspended: () =>
    aServedCounter()
      .picks("smart_pos")
      .reports("reported_success")
      .describesStation({ status: "suspended", revision: 2 }),
  station_closed: () => aServedCounter().describesStation({ status: "closed", revision: 2 }),
  /** A collection by a provider's QR: the provider has not returned the QR yet. */
  qr_asked: () => aQrCounter().picks("dynamic_qr"),
  qr_presented: () => aQrCounter().picks("dynamic_qr").givesQr(),
  /** The provider confirmed, and the payment seam has not answered yet. */
  qr_settling: () => aQrCounter().picks("dynamic_qr").givesQr().confirms(),
  /** The provider confirmed, and the seam refused. */
  qr_refused: () => aQrCounter().picks("dynamic_qr").givesQr().confirms().refusesToSettle(),
  qr_paid: () => aQrCounter().picks("dynamic_qr").givesQr().confirms().settles(),
  /** The cashier cancelled after the QR had been shown: the order is unclear. */
  qr_cancelled: () => aQrCounter().picks("dynamic_qr").givesQr().cancels(),
  qr_declined: () => aQrCounter().picks("dynamic_qr").givesQr().fails("payment_declined"),
  qr_overdue: () => aQrCounter().picks("dynamic_qr").givesQr().waits(180_000),
} satisfies Record<string, () => Scenario>;
export type Situation = keyof typeof SITUATIONS;

type Asked<T extends StationCommandType> = (counter: Scenario) => Extract<StationCommand, { type: T }>;

/** A new command of each type, about the intent, device and order of the situation. */
const COMMANDS: { readonly [T in StationCommandType]: { readonly by: Actor; readonly ask: Asked<T> } } = {
  station_put: {
    by: REGISTRY,
    ask: () => ({ type: "station_put", stationId: STATION_ID, station: { ...STATION, revision: 9 } }),
  },
  device_put: { by: REGISTRY, ask: () => ({ type: "device_put", device: { ...COMPANION_DEVICE, revision: 9 } }) },
  order_put: {
    by: SETTLEMENT,
    ask: () => ({ type: "order_put", order: { ...ORDER, amountMinor: "1500", revision: 9 } }),
  },
  device_seen: {
    by: SYSTEM,
    ask: ({ atMs }) => ({ type: "device_seen", deviceId: COMPANION.id, seenAtMs: atMs }),
  },
  device_silent: {
    by: SYSTEM,
    ask: ({ atMs }) => ({ type: "device_silent", deviceId: COMPANION.id, lastSeenAtMs: atMs }),
  },
  lease_acquire: { by: CASEY, ask: () => ({ type: "lease_acquire" }) },
  lease_renew: { by: CASEY, ask: () => ({ type: "lease_renew" }) },
  lease_release: { by: CASEY, ask: () => ({ type: "lease_release" }) },
  lease_break: { by: OWNER, ask: () => ({ type: "lease_break" }) },
  sessions_ended: { by: REGISTRY, ask: () => ({ type: "sessions_ended", sessionIds: [CASEYS.sessionId] }) },
  intent_create: {
    by: CASEY,
    ask: () => ({ type: "intent_create", route: "smart_pos", intentId: 2_000, order: ORDER }),
  },
  intent_attest: { by: CASEY, ask: ({ intentId }) => ({ type: "intent_attest", intentId }) },
  intent_cancel: { by: CASEY, ask: ({ intentId }) => ({ type: "intent_cancel", intentId }) },
  intent_present: { by: COMPANION, ask: ({ intentId }) => ({ type: "intent_present", intentId }) },
  intent_report: {
    by: COMPANION,
    ask: ({ intentId }) => ({
      type: "intent_report",
      intentId,
      outcome: "reported_success",
      providerReference: "RRN-2",
      providerCode: "00",
    }),
  },
  settlement_succeeded: {
    by: SETTLEMENT,
    ask: ({ intentId }) => ({ type: "settlement_succeeded", intentId, transactionId: 9_001 }),
  },
  settlement_refused: {
    by: SETTLEMENT,
    ask: ({ intentId }) => ({ type: "settlement_refused", intentId, code: "order_changed" }),
  },
  provider_put: { by: REGISTRY, ask: () => ({ type: "provider_put", provider: { configId: 82, revision: 9 } }) },
  provider_confirm: {
    by: PROVIDER,
    ask: ({ intentId }) => ({ type: "provider_confirm", intentId, providerReference: "PAY-1" }),
  },
  provider_failed: {
    by: PROVIDER,
    ask: ({ intentId }) => ({ type: "provider_failed", intentId, reason: "payment_declined" }),
  },
  provider_cleared: { by: PROVIDER, ask: ({ intentId }) => ({ type: "provider_cleared", intentId }) },
  provider_money_differs: {
    by: PROVIDER,
    ask: ({ intentId }) => ({ type: "provider_money_differs", intentId, issue: "amount_mismatch", issueId: 1 }),
  },
  order_inquire: { by: PROVIDER, ask: () => ({ type: "order_inquire", orderId: ORDER.orderId }) },
  end_reported: { by: SYSTEM, ask: ({ intentId }) => ({ type: "end_reported", intentId }) },
  qr_ready: {
    by: PROVIDER,
    ask: ({ intentId }) => ({ type: "qr_ready", intentId, qrPayload: QR, providerReference: "PAY-1" }),
  },
  tick: { by: SYSTEM, ask: () => ({ type: "tick" }) },
  rule_out: { by: SYSTEM, ask: () => ({ type: "rule_out", commandId: "lost:1" }) },
};

/** The station's reply and commit, in one line: `reply + event, event`. */
export function outcomeOf(situation: Situation, type: StationCommandType): string {
  const counter = SITUATIONS[situation]();
  const { by, ask } = COMMANDS[type];
  counter.waits(1_000).send(ask(counter), by);
  const reply = inWords(counter.reply);
  return counter.happened.length === 0 ? reply : `${reply} + ${counter.happened.join(", ")}`;
}

function inWords(reply: StationReply | undefined): string {
  if (reply === undefined) return "nothing";
  if (!reply.ok) {
    const detail = reply.earlierIntentId ?? reply.reason ?? reply.status ?? reply.holder;
    return detail === undefined ? reply.code : `${reply.code} (${detail})`;
  }
  switch (reply.type) {
    case "accepted":
      return "accepted";
    case "lease":
      return reply.lease === null ? "lease free" : `lease of ${reply.lease.cashierName}`;
    case "intent":
      return `intent ${reply.status}`;
    case "report":
      return "report kept";
  }
}
