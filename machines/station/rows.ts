/**
 * Encodes the repetitive part of a commit. A record becomes a row of values without names: words of closed lists become their
 * index, and times become differences. Ended intents and replies are the largest part of a commit, and every gateway has one
 * commit per station in memory. The tests' golden commits have the rows of each machine version. Add a new word at the end of
 * its list, because the commit stores its index.
 */
import {
  ATTESTERS,
  type Attestation,
  END_REASONS,
  type FormerReport,
  INTENT_STATES,
  type PaymentIntent,
  type ProviderPayment,
  REPORTED_OUTCOMES,
  type Report,
  ROUTES,
  UNCLEAR_REASONS,
} from "../payment-intent.ts";
import { DEVICE_STATUSES } from "../standing.ts";
import type { StationReply } from "./reply.ts";
import {
  CAPABILITIES,
  DEVICE_KINDS,
  type KnownOrder,
  type OlderReason,
  ORDER_STATUSES,
  type ShownOrder,
  type StationDevice,
  type StoredReply,
  type UnclearCollection,
} from "./state.ts";

/** The index of a word in its closed list. */
type Word = number;

type ReportRow = readonly [
  deviceId: number,
  outcome: Word,
  providerReference: string,
  providerCode: string,
  reportedAfterMs: number,
  key: string,
];

type AttestationRow = readonly [
  commandId: string,
  cashierId: number,
  cashierName: string,
  reference: string,
  attestedAfterMs: number,
  transactionId: number | null,
  by: Word,
  /** Left out when false, which is nearly always. */
  confirmsReferenceAlreadyUsed?: 1,
];

/** A row without a QR payload, because an ended intent has none. */
type ProviderRow = readonly [
  configId: number,
  providerReference: string,
  confirmedAfterMs: number | null,
  /** Left out when no request ended the intent. */
  requestId?: string,
];

/** All other times are differences to `createdAtMs`. */
export type IntentRow = readonly [
  intentId: number,
  displayNumber: number,
  route: Word,
  orderId: number,
  orderDisplayNumber: number,
  amountMinor: string,
  currency: string,
  stationName: string,
  deviceId: number | null,
  handoffTarget: string,
  createdBy: number,
  createdAtMs: number,
  lifetimeMs: number,
  presentedAfterMs: number | null,
  reports: readonly ReportRow[],
  reportCount: number,
  attestation: AttestationRow | null,
  endedAfterMs: number | null,
  status: Word,
  provider: ProviderRow | null,
  endReason: Word | null,
  moneyMayHaveMoved: Word | null,
  orderRevision: number,
  cancelKey: string,
  formerReports: readonly FormerReportRow[],
  reasonSinceEnd: Word | null,
];

type FormerReportRow = readonly [
  key: string,
  outcome: Word,
  reportedAfterMs: number,
  /** Left out for a report that an earlier version dropped. */
  textDigest?: string,
];

export function writeIntent(intent: PaymentIntent): IntentRow {
  const { createdAtMs, attestation, provider, endReason, moneyMayHaveMoved, reasonSinceEnd } = intent;
  const after = (atMs: number | null): number | null => (atMs === null ? null : atMs - createdAtMs);
  return [
    intent.intentId,
    intent.displayNumber,
    ROUTES.indexOf(intent.route),
    intent.orderId,
    intent.orderDisplayNumber,
    intent.amountMinor,
    intent.currency,
    intent.stationName,
    intent.deviceId,
    intent.handoffTarget,
    intent.createdBy,
    createdAtMs,
    intent.expiresAtMs - createdAtMs,
    after(intent.presentedAtMs),
    intent.reports.map((report) => writeReport(report, createdAtMs)),
    intent.reportCount,
    attestation === null ? null : writeAttestation(attestation, createdAtMs),
    after(intent.endedAtMs),
    INTENT_STATES.indexOf(intent.status),
    provider === null ? null : writeProvider(provider, after(provider.confirmedAtMs)),
    endReason === "" ? null : END_REASONS.indexOf(endReason),
    moneyMayHaveMoved === "" ? null : UNCLEAR_REASONS.indexOf(moneyMayHaveMoved),
    intent.orderRevision,
    intent.cancelKey,
    intent.formerReports.map((report) => writeFormerReport(report, createdAtMs)),
    reasonSinceEnd === "" ? null : UNCLEAR_REASONS.indexOf(reasonSinceEnd),
  ];
}

export function readIntent(row: IntentRow): PaymentIntent {
  const createdAtMs = row[11];
  const at = (afterMs: number | null): number | null => (afterMs === null ? null : createdAtMs + afterMs);
  return {
    intentId: row[0],
    displayNumber: row[1],
    route: word(ROUTES, row[2]),
    orderId: row[3],
    orderDisplayNumber: row[4],
    orderRevision: row[22],
    amountMinor: row[5],
    currency: row[6],
    stationName: row[7],
    deviceId: row[8],
    handoffTarget: row[9],
    createdBy: row[10],
    createdAtMs,
    expiresAtMs: createdAtMs + row[12],
    presentedAtMs: at(row[13]),
    reports: row[14].map((report) => readReport(report, createdAtMs)),
    reportCount: row[15],
    attestation: row[16] === null ? null : readAttestation(row[16], createdAtMs),
    endedAtMs: at(row[17]),
    status: word(INTENT_STATES, row[18]),
    provider: row[19] === null ? null : readProvider(row[19], createdAtMs),
    endReason: row[20] === null ? "" : word(END_REASONS, row[20]),
    moneyMayHaveMoved: row[21] === null ? "" : word(UNCLEAR_REASONS, row[21]),
    reasonSinceEnd: row[25] === null ? "" : word(UNCLEAR_REASONS, row[25]),
    cancelKey: row[23],
    formerReports: row[24].map((report) => readFormerReport(report, createdAtMs)),
  };
}

function writeReport(report: Report, sinceMs: number): ReportRow {
  const { deviceId, outcome, providerReference, providerCode, reportedAtMs, key } = report;
  return [deviceId, REPORTED_OUTCOMES.indexOf(outcome), providerReference, providerCode, reportedAtMs - sinceMs, key];
}

function readReport(row: ReportRow, sinceMs: number): Report {
  const [deviceId, outcome, providerReference, providerCode, reportedAfterMs, key] = row;
  const reportedAtMs = sinceMs + reportedAfterMs;
  return { deviceId, outcome: word(REPORTED_OUTCOMES, outcome), providerReference, providerCode, reportedAtMs, key };
}

function writeFormerReport({ key, outcome, reportedAtMs, textDigest }: FormerReport, sinceMs: number): FormerReportRow {
  const row = [key, REPORTED_OUTCOMES.indexOf(outcome), reportedAtMs - sinceMs] as const;
  return textDigest === undefined ? row : [...row, textDigest];
}

function readFormerReport([key, outcome, afterMs, textDigest]: FormerReportRow, sinceMs: number): FormerReport {
  const report = { key, outcome: word(REPORTED_OUTCOMES, outcome), reportedAtMs: sinceMs + afterMs };
  return textDigest === undefined ? report : { ...report, textDigest };
}

function writeAttestation(attestation: Attestation, sinceMs: number): AttestationRow {
  const { commandId, cashierId, cashierName, reference, atMs, transactionId, by } = attestation;
  const row = [
    commandId,
    cashierId,
    cashierName,
    reference,
    atMs - sinceMs,
    transactionId,
    ATTESTERS.indexOf(by),
  ] as const;
  return attestation.confirmsReferenceAlreadyUsed === true ? [...row, 1] : row;
}

function readAttestation(row: AttestationRow, sinceMs: number): Attestation {
  const [commandId, cashierId, cashierName, reference, attestedAfterMs, transactionId, by, confirms] = row;
  const atMs = sinceMs + attestedAfterMs;
  const attested = { by: word(ATTESTERS, by), commandId, cashierId, cashierName, reference, atMs, transactionId };
  return confirms === 1 ? { ...attested, confirmsReferenceAlreadyUsed: true } : attested;
}

function writeProvider(provider: ProviderPayment, confirmedAfterMs: number | null): ProviderRow {
  const { configId, providerReference, requestId } = provider;
  const row = [configId, providerReference, confirmedAfterMs] as const;
  return requestId === undefined ? row : [...row, requestId];
}

function readProvider(row: ProviderRow, sinceMs: number): ProviderPayment {
  const [configId, providerReference, confirmedAfterMs, requestId] = row;
  const confirmedAtMs = confirmedAfterMs === null ? null : sinceMs + confirmedAfterMs;
  const provider = { configId, qrPayload: "", providerReference, confirmedAtMs };
  return requestId === undefined ? provider : { ...provider, requestId };
}

export type UnclearRow = readonly [
  orderId: number,
  intentId: number,
  reason: Word,
  /** Null when no cashier has confirmed the reason. */
  confirmedFor?: number | null,
  /** Left out by an earlier version. */
  reasonNumber?: number,
];

export function writeUnclear({ orderId, intentId, reason, confirmedFor, reasonNumber }: UnclearCollection): UnclearRow {
  return [orderId, intentId, UNCLEAR_REASONS.indexOf(reason), confirmedFor ?? null, reasonNumber];
}

export function readUnclear([
  orderId,
  intentId,
  reason,
  confirmedFor,
  reasonNumber = 0,
]: UnclearRow): UnclearCollection {
  const unclear = { orderId, intentId, reason: word(UNCLEAR_REASONS, reason), reasonNumber };
  return typeof confirmedFor === "number" ? { ...unclear, confirmedFor } : unclear;
}

export type OlderReasonRow = readonly [orderId: number, intentId: number, reason: Word];

export function writeOlderReason({ orderId, intentId, reason }: OlderReason): OlderReasonRow {
  return [orderId, intentId, UNCLEAR_REASONS.indexOf(reason)];
}

export function readOlderReason([orderId, intentId, reason]: OlderReasonRow): OlderReason {
  return { orderId, intentId, reason: word(UNCLEAR_REASONS, reason) };
}

export type WaitingOrderRow = readonly [
  orderId: number,
  orderDisplayNumber: number,
  amountMinor: string,
  currency: string,
  revision: number,
  shownAtMs: number,
];

/** The row has no status, because all waiting orders are open. */
export function writeWaitingOrder(order: ShownOrder): WaitingOrderRow {
  const { orderId, orderDisplayNumber, amountMinor, currency, revision, shownAtMs } = order;
  return [orderId, orderDisplayNumber, amountMinor, currency, revision, shownAtMs];
}

export function readWaitingOrder(row: WaitingOrderRow): ShownOrder {
  const [orderId, orderDisplayNumber, amountMinor, currency, revision, shownAtMs] = row;
  return { orderId, orderDisplayNumber, amountMinor, currency, status: "open", revision, shownAtMs };
}

export type KnownOrderRow = readonly [orderId: number, revision: number, status: Word];

export function writeKnownOrder({ orderId, revision, status }: KnownOrder): KnownOrderRow {
  return [orderId, revision, ORDER_STATUSES.indexOf(status)];
}

export function readKnownOrder([orderId, revision, status]: KnownOrderRow): KnownOrder {
  return { orderId, revision, status: word(ORDER_STATUSES, status) };
}

export type DeviceRow = readonly [
  deviceId: number,
  name: string,
  kind: Word,
  capabilities: readonly Word[],
  status: Word,
  handoffTarget: string,
  revision: number,
  isOnline: 0 | 1,
  lastSeenAtMs: number | null,
  sinceMs: number | null,
];

export function writeDevice(device: StationDevice): DeviceRow {
  const { deviceId, name, kind, capabilities, status, handoffTarget, revision, liveness } = device;
  return [
    deviceId,
    name,
    DEVICE_KINDS.indexOf(kind),
    capabilities.map((capability) => CAPABILITIES.indexOf(capability)),
    DEVICE_STATUSES.indexOf(status),
    handoffTarget,
    revision,
    liveness.state === "online" ? 1 : 0,
    liveness.lastSeenAtMs,
    liveness.sinceMs,
  ];
}

export function readDevice(row: DeviceRow): StationDevice {
  const [deviceId, name, kind, capabilities, status, handoffTarget, revision, isOnline, lastSeenAtMs, sinceMs] = row;
  return {
    deviceId,
    name,
    kind: word(DEVICE_KINDS, kind),
    capabilities: capabilities.map((capability) => word(CAPABILITIES, capability)),
    status: word(DEVICE_STATUSES, status),
    handoffTarget,
    revision,
    liveness: { state: isOnline === 1 ? "online" : "offline", lastSeenAtMs, sinceMs },
  };
}

/** A stored reply: the command's id, then the reply. Two frequent kinds of reply are rows, the others are stored unchanged. */
export type StoredReplyRow =
  | readonly [commandId: string, intentId: number, status: Word]
  | readonly [commandId: string, intentId: number, report: ReportRow]
  | readonly [
      commandId: string,
      other: Exclude<StationReply, { type: "intent" | "report" }>,
      requestDigest?: string | undefined,
    ];

export function writeStoredReply({ commandId, reply, requestDigest }: StoredReply): StoredReplyRow {
  if (!isAboutIntent(reply))
    return requestDigest === undefined ? [commandId, reply] : [commandId, reply, requestDigest];
  return reply.type === "intent"
    ? [commandId, reply.intentId, INTENT_STATES.indexOf(reply.status)]
    : [commandId, reply.intentId, writeReport(reply.report, 0)];
}

export function readStoredReply(row: StoredReplyRow): StoredReply {
  const [commandId, about, detail] = row;
  if (typeof about !== "number")
    return typeof detail === "string"
      ? { commandId, reply: about, requestDigest: detail }
      : { commandId, reply: about };
  const reply: StationReply =
    typeof detail === "number"
      ? { ok: true, type: "intent", intentId: about, status: word(INTENT_STATES, detail) }
      : { ok: true, type: "report", intentId: about, report: readReport(detail as ReportRow, 0) };
  return { commandId, reply };
}

function isAboutIntent(reply: StationReply): reply is Extract<StationReply, { type: "intent" | "report" }> {
  return reply.ok && (reply.type === "intent" || reply.type === "report");
}

/** The word at an index. The index is known, because `decodeCommit` refuses commits of a newer program. */
function word<T extends string>(words: readonly T[], index: Word): T {
  return words[index] as T;
}
