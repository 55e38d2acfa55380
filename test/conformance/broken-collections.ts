/** Broken reports, decisions, standing, displays, throttles and settlements. */
import {
  accept,
  atDevice,
  type BrokenService,
  broken,
  goodAt,
  inner,
  intentReads,
  isAt,
  isCashier,
  orderReads,
  refuse,
  reportRefusal,
  requestOf,
  statusOf,
} from "./broken-service.ts";

const displayFields = ["order_display_number", "amount", "currency", "qr_payload", "intent_status", "server_time"];
const reportFields = ["outcome", "provider_reference", "provider_code", "reported_at"];

export const BROKEN_COLLECTIONS: readonly BrokenService[] = [
  // Report.
  broken(
    "a foreign intent can be reported",
    "report.not_assigned",
    atDevice("POST", "assignment/report/", (answer) => {
      if (answer.status === 404) accept(answer, {});
    }),
  ),
  broken(
    "a foreign intent has another code",
    "report.not_assigned",
    atDevice("POST", "assignment/report/", (answer) => {
      if (answer.status === 404) refuse(answer, 404, "not_found");
    }),
  ),
  broken(
    "any outcome is taken",
    "report.outcome_vocabulary",
    atDevice("POST", "assignment/report/", (answer) => {
      if (answer.status === 400) accept(answer, {});
    }),
  ),
  broken(
    "the report's answer has server_time",
    "report.accepted",
    atDevice("POST", "assignment/report/", (answer) => {
      const assignment = inner(answer, "assignment");
      if (assignment !== undefined) assignment["server_time"] = new Date().toISOString();
    }),
  ),
  broken(
    "the report's answer has no assignment",
    "report.accepted",
    goodAt("POST", "assignment/report/", (body) => delete body["assignment"]),
  ),
  broken(
    "the report's answer has no report",
    "report.outcome",
    goodAt("POST", "assignment/report/", (body) => delete body["report"]),
  ),
  ...reportFields.map((field) =>
    broken(
      `the report has no ${field}`,
      `report.${field}`,
      goodAt("POST", "assignment/report/", (body) => {
        delete (body["report"] as Record<string, unknown>)[field];
      }),
    ),
  ),
  broken(
    "the provider's code is changed",
    "report.provider_code",
    goodAt("POST", "assignment/report/", (body) => {
      const report = body["report"] as Record<string, unknown>;
      report["provider_code"] = String(report["provider_code"]).trim().toLowerCase();
    }),
  ),
  broken("a reported success settles", "report.processing", statusOf("processing", "succeeded")),
  broken(
    "a reported success marks the order paid",
    "report.processing",
    orderReads((order) => {
      if (order["status"] === "open") order["status"] = "paid";
    }),
  ),
  broken(
    "settling is not offered after a success",
    "report.shown_to_cashier",
    intentReads((intent) => (intent["settle_offered"] = false)),
  ),
  broken(
    "the cashier does not see the report",
    "report.shown_to_cashier",
    intentReads((intent) => (intent["reports"] = [])),
  ),
  broken(
    "a repeated report gets another answer",
    "report.same_key",
    goodAt("POST", "assignment/report/", (body) => {
      (body["report"] as Record<string, unknown>)["reported_at"] = new Date(
        Date.now() + Math.round(performance.now()),
      ).toISOString();
    }),
  ),
  broken(
    "a repeated report is refused",
    "report.same_key",
    atDevice("POST", "assignment/report/", (answer, passing, memory) => {
      const key = String(requestOf(passing)["client_idempotency_key"]);
      if (memory.has(key)) refuse(answer, 409, "intent_not_actionable");
      memory.set(key, true);
    }),
  ),
  broken(
    "a repeated report is counted twice",
    "report.same_key",
    intentReads((intent) => (intent["report_count"] = 2)),
  ),
  broken(
    "a device changes the amount",
    "report.no_money_field",
    orderReads((order) => (order["total"] = "0.01")),
  ),

  // The cashier's decision.
  broken(
    "the attestation has another reference",
    "attest.settles",
    orderReads((order) => {
      const transaction = order["transaction"] as Record<string, unknown> | null;
      if (transaction !== null) transaction["reference"] = "";
    }),
  ),
  broken(
    "an attestation leaves the order open",
    "attest.settles",
    orderReads((order) => (order["status"] = "open")),
  ),
  broken("an attestation is refused", "attest.settles", (passing, answer) => {
    if (isCashier(passing, "POST", /\/attest\/$/)) refuse(answer, 409, "evidence_required");
  }),
  broken(
    "a settled intent takes a report",
    "report.after_settled",
    reportRefusal((answer) => accept(answer, {})),
  ),
  broken(
    "the refusal names no status",
    "report.after_settled",
    reportRefusal((answer) => delete answer.body?.["status"]),
  ),
  broken(
    "the refusal has another code",
    "report.after_settled",
    reportRefusal((answer) => {
      if (answer.body !== undefined) answer.body["code"] = "conflict";
    }),
  ),
  broken("a settled collection is still handed out", "assignment.gone", (passing, answer, memory) => {
    if (isCashier(passing, "POST", /\/attest\/$/)) memory.set("settled", true);
    if (memory.has("settled") && isAt(passing, "GET", "assignment/") && answer.body !== undefined)
      answer.body["assignment"] ??= { intent_id: 1 };
  }),
  broken(
    "a decline cancels the intent",
    "report.declined",
    intentReads((intent) => {
      const [report] = intent["reports"] as Record<string, unknown>[];
      if (report?.["outcome"] === "reported_declined" && intent["status"] === "processing")
        intent["status"] = "cancelled";
    }),
  ),
  broken(
    "settling is not offered after a decline",
    "report.declined",
    intentReads((intent) => {
      const [report] = intent["reports"] as Record<string, unknown>[];
      if (report?.["outcome"] === "reported_declined") intent["settle_offered"] = false;
    }),
  ),
  broken("a decline frees the order for a second collection", "report.declined", (passing, answer) => {
    if (isCashier(passing, "POST", /\/intents\/$/) && answer.status === 409) {
      answer.status = 201;
      answer.body = { intent_id: 1, intent_display_number: 1 };
    }
  }),
  broken("the cashier cannot cancel", "cancel.by_cashier", (passing, answer) => {
    if (isCashier(passing, "POST", /\/cancel\/$/)) refuse(answer, 409, "settlement_in_progress");
  }),
  broken("a cancelled intent goes on", "cancel.by_cashier", statusOf("cancelled", "processing")),
  broken(
    "a cancelled intent is called settled",
    "report.after_cancelled",
    reportRefusal((answer) => {
      if (answer.body?.["status"] === "cancelled") answer.body["status"] = "succeeded";
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
  broken(
    "a suspended device may report",
    "standing.report_refused",
    atDevice("POST", "assignment/report/", (answer) => {
      if (answer.status === 403) accept(answer, {});
    }),
  ),
  broken(
    "a frozen station's devices are served",
    "kill_switch.station",
    atDevice("GET", "assignment/", (answer) => {
      if (answer.body?.["code"] === "station_frozen") accept(answer, { assignment: null });
    }),
  ),

  // Display.
  broken(
    "the display has a state that the contract lacks",
    "display.idle",
    goodAt("GET", "display/", (body) => {
      if (body["state"] === "idle") body["state"] = "ready";
    }),
  ),
  broken(
    "the display never shows the total",
    "display.total",
    goodAt("GET", "display/", (body) => {
      if (body["state"] === "total") body["state"] = "idle";
    }),
  ),
  broken(
    "the display shows another amount",
    "display.total",
    goodAt("GET", "display/", (body) => (body["amount"] = "1.00")),
  ),
  ...displayFields.map((field) =>
    broken(
      `the display has no ${field}`,
      ["amount", "currency", "order_display_number", "intent_status"].includes(field)
        ? "display.total"
        : `display.${field}`,
      goodAt("GET", "display/", (body) => delete body[field]),
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
  broken(
    "an unchanged display is 200",
    "display.not_modified",
    atDevice("GET", "display/", (answer) => {
      if (answer.status === 304) accept(answer, { state: "idle" });
    }),
  ),
  broken(
    "the display never shows that it is paid",
    "display.paid",
    goodAt("GET", "display/", (body) => {
      if (body["state"] === "paid") body["state"] = "idle";
    }),
  ),

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
    orderReads((order) => {
      const transaction = order["transaction"] as Record<string, unknown> | null;
      if (transaction?.["route"] === "cash") transaction["amount"] = "25.00";
    }),
  ),
  broken(
    "the terminal's reference is lost",
    "settle.attested_terminal",
    orderReads((order) => {
      const transaction = order["transaction"] as Record<string, unknown> | null;
      if (transaction?.["route"] === "attested_terminal") transaction["reference"] = "";
    }),
  ),
  broken("a paid order is collected again", "settle.order_once", (passing, answer) => {
    if (isCashier(passing, "POST", /\/intents\/$/) && answer.body?.["code"] === "order_already_paid") {
      answer.status = 201;
      answer.body = { intent_id: 1 };
    }
  }),
  broken("a device's credential opens the till", "settle.cashier_only", (passing, answer) => {
    if (isCashier(passing, "GET", /\/lease\/$/) && answer.status === 401) accept(answer, { lease: null });
  }),
];
