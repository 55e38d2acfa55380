/** Services with broken reports, decisions, standing, displays, throttles or settlements. */
import {
  accept,
  acceptsAt,
  acceptsAtTill,
  acceptsReport,
  atDevice,
  atReport,
  type BrokenService,
  broken,
  createsIntent,
  goodAt,
  inIntent,
  inOrder,
  inReport,
  inReportedAssignment,
  inTransaction,
  isAt,
  isCashier,
  refuse,
  refusesAtTill,
  requestOf,
  statusOf,
} from "./broken-service.ts";

const orderFields = ["order_display_number", "amount", "currency", "intent_status"];
const displayFields = [...orderFields, "qr_payload", "server_time"];
const reportFields = ["outcome", "provider_reference", "provider_code", "reported_at"];
const reportAfterEnd = (change: (body: Record<string, unknown>) => void) =>
  atReport(({ status, body }) => {
    if (status === 409 && body !== undefined) change(body);
  });
const displayInstead = (from: string, to: string) =>
  goodAt("GET", "display/", (body) => {
    if (body["state"] === from) body["state"] = to;
  });

export const BROKEN_COLLECTIONS: readonly BrokenService[] = [
  // Report.
  broken("a foreign intent can be reported", "report.not_assigned", acceptsReport(404)),
  broken(
    "a foreign intent has another code",
    "report.not_assigned",
    atReport((answer) => {
      if (answer.status === 404) refuse(answer, 404, "not_found");
    }),
  ),
  broken("any outcome is accepted", "report.outcome_vocabulary", acceptsReport(400)),
  broken(
    "the report's answer has server_time",
    "report.accepted",
    inReportedAssignment((assignment) => (assignment["server_time"] = new Date().toISOString())),
  ),
  broken(
    "the report's answer has no assignment",
    "report.accepted",
    atReport(({ body }) => delete body?.["assignment"]),
  ),
  broken(
    "the report's answer has no report",
    "report.outcome",
    atReport(({ body }) => delete body?.["report"]),
  ),
  ...reportFields.map((field) =>
    broken(
      `the report has no ${field}`,
      `report.${field}`,
      inReport((report) => delete report[field]),
    ),
  ),
  broken(
    "the provider's code is changed",
    "report.provider_code",
    inReport((report) => {
      report["provider_code"] = String(report["provider_code"]).trim().toLowerCase();
    }),
  ),
  broken("a reported success settles", "report.processing", statusOf("processing", "succeeded")),
  broken(
    "a reported success marks the order paid",
    "report.processing",
    inOrder((order) => {
      if (order["status"] === "open") order["status"] = "paid";
    }),
  ),
  broken(
    "settling is not offered after a success",
    "report.shown_to_cashier",
    inIntent((intent) => (intent["settle_offered"] = false)),
  ),
  broken(
    "the cashier does not see the report",
    "report.shown_to_cashier",
    inIntent((intent) => (intent["reports"] = [])),
  ),
  broken(
    "a repeated report gets another answer",
    "report.same_key",
    inReport((report) => {
      report["reported_at"] = new Date(Date.now() + Math.round(performance.now())).toISOString();
    }),
  ),
  broken(
    "a repeated report is refused",
    "report.same_key",
    atReport((answer, passing, memory) => {
      const key = String(requestOf(passing)["client_idempotency_key"]);
      if (memory.has(key)) refuse(answer, 409, "intent_not_actionable");
      memory.set(key, true);
    }),
  ),
  broken(
    "a repeated report is counted twice",
    "report.same_key",
    inIntent((intent) => (intent["report_count"] = 2)),
  ),
  broken(
    "a device changes the amount",
    "report.no_money_field",
    inOrder((order) => (order["total"] = "0.01")),
  ),

  // The cashier's decision.
  broken(
    "the attestation has another reference",
    "attest.settles",
    inTransaction((transaction) => (transaction["reference"] = "")),
  ),
  broken(
    "an attestation leaves the order open",
    "attest.settles",
    inOrder((order) => (order["status"] = "open")),
  ),
  broken("an attestation is refused", "attest.settles", refusesAtTill("POST", /\/attest\/$/, 409, "evidence_required")),
  broken("a settled intent accepts a report", "report.after_settled", acceptsReport(409)),
  broken(
    "the refusal names no status",
    "report.after_settled",
    reportAfterEnd((body) => delete body["status"]),
  ),
  broken(
    "the refusal has another code",
    "report.after_settled",
    reportAfterEnd((body) => (body["code"] = "conflict")),
  ),
  broken("a settled collection is still handed out", "assignment.gone", (passing, answer, memory) => {
    if (isCashier(passing, "POST", /\/attest\/$/)) memory.set("settled", true);
    if (memory.has("settled") && isAt(passing, "GET", "assignment/") && answer.body !== undefined)
      answer.body["assignment"] ??= { intent_id: 1 };
  }),
  broken(
    "a decline cancels the intent",
    "report.declined",
    inIntent((intent) => {
      const [report] = intent["reports"] as Record<string, unknown>[];
      if (report?.["outcome"] === "reported_declined" && intent["status"] === "processing")
        intent["status"] = "cancelled";
    }),
  ),
  broken(
    "settling is not offered after a decline",
    "report.declined",
    inIntent((intent) => {
      const [report] = intent["reports"] as Record<string, unknown>[];
      if (report?.["outcome"] === "reported_declined") intent["settle_offered"] = false;
    }),
  ),
  broken("a decline frees the order for a second collection", "report.declined", createsIntent(409)),
  broken(
    "the cashier cannot cancel",
    "cancel.by_cashier",
    refusesAtTill("POST", /\/cancel\/$/, 409, "settlement_in_progress"),
  ),
  broken("a cancelled intent continues", "cancel.by_cashier", statusOf("cancelled", "processing")),
  broken(
    "a cancelled intent is called settled",
    "report.after_cancelled",
    reportAfterEnd((body) => {
      if (body["status"] === "cancelled") body["status"] = "succeeded";
    }),
  ),
  broken(
    "an expired intent is called cancelled",
    "report.after_expired",
    reportAfterEnd((body) => {
      if (body["status"] === "expired") body["status"] = "cancelled";
    }),
  ),

  // Standing and kill switches.
  broken(
    "a suspended device is served",
    "standing.device_suspended",
    atDevice("GET", "assignment/", (answer) => {
      if (answer.status === 403) accept(answer, { assignment: null, server_time: new Date().toISOString() });
    }),
  ),
  broken(
    "the standing has no reason",
    "standing.device_suspended",
    atDevice("GET", "assignment/", (answer) => {
      if (answer.status === 403) refuse(answer, 403, "forbidden");
    }),
  ),
  broken("a suspended device may report", "standing.report_refused", acceptsReport(403)),
  broken(
    "a frozen station's devices are served",
    "kill_switch.station",
    acceptsAt("GET", "assignment/", "station_frozen", { assignment: null }),
  ),

  // Display.
  broken("the display has a state that the contract lacks", "display.idle", displayInstead("idle", "ready")),
  broken("the display never shows the total", "display.total", displayInstead("total", "idle")),
  broken(
    "the display shows another amount",
    "display.total",
    goodAt("GET", "display/", (body) => (body["amount"] = "1.00")),
  ),
  ...displayFields.map((field) =>
    broken(
      `the display has no ${field}`,
      orderFields.includes(field) ? "display.total" : `display.${field}`,
      goodAt("GET", "display/", (body) => delete body[field]),
    ),
  ),
  ...orderFields.map((field) =>
    broken(
      `the idle display has no ${field}`,
      `display.${field}`,
      goodAt("GET", "display/", (body) => {
        if (body["state"] === "idle") delete body[field];
      }),
    ),
  ),
  broken(
    "the QR is shown outside of its state",
    "display.qr_payload",
    goodAt("GET", "display/", (body) => {
      if (body["state"] === "total") body["qr_payload"] = "https://pay.example/x";
    }),
  ),
  broken(
    "the QR is empty",
    "display.qr",
    goodAt("GET", "display/", (body) => (body["qr_payload"] = "")),
  ),
  broken("an unchanged display is 200", "display.not_modified", acceptsAt("GET", "display/", 304, { state: "idle" })),
  broken("the display never shows that it is paid", "display.paid", displayInstead("paid", "idle")),

  // Throttle and settlement.
  broken("there is no throttle", "throttle.per_credential", (_passing, answer) => {
    if (answer.status === 429) accept(answer, {});
  }),
  broken("the throttle has no time to wait", "throttle.per_credential", (_passing, answer) => {
    if (answer.status === 429) delete answer.headers["retry-after"];
  }),
  broken(
    "cash settles another amount",
    "settle.cash",
    inTransaction((transaction) => (transaction["amount"] = "25.00"), "cash"),
  ),
  broken(
    "the terminal's reference is lost",
    "settle.attested_terminal",
    inTransaction((transaction) => (transaction["reference"] = ""), "attested_terminal"),
  ),
  broken("a paid order is collected again", "settle.order_once", createsIntent("order_already_paid")),
  broken(
    "a device's credential is accepted at the till",
    "settle.cashier_only",
    acceptsAtTill("GET", /\/lease\/$/, 401, { lease: null }),
  ),
];
