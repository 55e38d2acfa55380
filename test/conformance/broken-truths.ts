/** Services whose answers have the right form and a false content, or that accept what they must refuse. */
import { DEVICE_ROOT } from "../../clients/conformance/http.ts";
import {
  accept,
  acceptsAt,
  acceptsAtTill,
  acceptsReport,
  asksForChanges,
  atDevice,
  atReport,
  type BrokenService,
  broken,
  callUnchanged,
  goodAt,
  hasCredential,
  inReport,
  inReportedAssignment,
  inReportsOfIntent,
  inRoutes,
  inTransaction,
  isAt,
  isCashier,
  isGood,
  isReport,
  refuse,
  requestOf,
} from "./broken-service.ts";

const isSnapshot = /\/(?:heartbeat|me)\/$/;

export const BROKEN_TRUTHS: readonly BrokenService[] = [
  // Enrollment and scopes.
  broken(
    "a display is enrolled as another device",
    "snapshot.owner_truth",
    goodAt("POST", "enroll/", (body) => {
      const device = body["device"] as Record<string, unknown>;
      if (device["kind"] === "customer_display") device["device_id"] = Number(device["device_id"]) + 1;
    }),
  ),
  broken(
    "a spent code has another header",
    "enroll.alike_refusals",
    atDevice("POST", "enroll/", (answer, passing) => {
      if (!isGood(answer) && requestOf(passing)["code"] !== "00000-00000") answer.headers["x-reason"] = "spent";
    }),
  ),
  broken("all devices have one credential", "enroll.credential_once", (passing, answer, memory) => {
    if (!isAt(passing, "POST", "enroll/") || !isGood(answer) || answer.body === undefined) return;
    answer.body["credential"] = memory.get("first") ?? answer.body["credential"];
    memory.set("first", answer.body["credential"]);
  }),
  broken(
    "a heartbeat leaks the credential",
    "answers.without_credential",
    goodAt("POST", "heartbeat/", (body, passing) => {
      body["debug"] = { token: passing.headers["authorization"]?.slice("Bearer ".length) };
    }),
  ),
  broken(
    "the assignment leaks the credential",
    "answers.without_credential",
    goodAt("GET", "assignment/", (body, passing) => {
      body["session"] = passing.headers["authorization"];
    }),
  ),
  broken(
    "a display may read assignments",
    "scopes.by_kind",
    acceptsAt("GET", "assignment/", "scope_denied", { assignment: null }),
  ),
  broken("a display may report", "scopes.by_kind", acceptsReport("scope_denied")),
  broken(
    "a revoked credential may still send heartbeats",
    "auth.revoked",
    acceptsAt("POST", "heartbeat/", 401, {}, hasCredential),
  ),
  broken(
    "a revoked credential may still read the assignment",
    "auth.revoked",
    acceptsAt("GET", "assignment/", 401, { assignment: null }, hasCredential),
  ),
  broken("a 401 does not name the way to authenticate", "auth.bearer_needed", (_passing, answer) => {
    delete answer.headers["www-authenticate"];
  }),
  broken(
    "the answer with the credential may be stored",
    "enroll.credential_once",
    atDevice("POST", "enroll/", (answer) => {
      if (isGood(answer)) answer.headers["cache-control"] = "private, no-cache";
    }),
  ),

  // Form of all answers.
  broken(
    "the display may be cached",
    "answers.not_cached",
    atDevice("GET", "display/", (answer) => (answer.headers["cache-control"] = "public, max-age=60")),
  ),
  broken("answers are text", "answers.json", ({ path }, answer) => {
    if (path.startsWith(DEVICE_ROOT) && answer.body !== undefined) answer.headers["content-type"] = "text/plain";
  }),
  broken("refusals have no code", "answers.refusals_have_code", ({ path, headers }, answer) => {
    if (path.startsWith(DEVICE_ROOT) && answer.status === 401 && headers["authorization"] === undefined)
      answer.body = { detail: "No." };
  }),
  broken("the throttle is ten times as strict", "throttle.served_at_pace", (passing, answer) => {
    if (isAt(passing, "GET", "me/") && isGood(answer)) {
      answer.headers["retry-after"] = "10";
      refuse(answer, 429, "throttled");
    }
  }),

  // Snapshots.
  ...(["name", "station_name", "kind", "status", "station_status", "blocked_reason"] as const).map((field) =>
    broken(`a snapshot has another ${field}`, "snapshot.owner_truth", ({ path }, answer) => {
      if (isSnapshot.test(path) && path.startsWith(DEVICE_ROOT) && isGood(answer) && answer.body !== undefined)
        answer.body[field] = "another";
    }),
  ),
  broken(
    "a display is enrolled without its capabilities",
    "snapshot.owner_truth",
    goodAt("POST", "enroll/", (body) => {
      const device = body["device"] as Record<string, unknown>;
      if (device["kind"] === "customer_display") device["capabilities"] = [];
    }),
  ),

  // Assignments.
  broken(
    "the assignment's clock is stalled",
    "assignment.nothing",
    goodAt("GET", "assignment/", (body) => (body["server_time"] = "2020-01-01T00:00:00.000Z")),
  ),
  broken("a reported assignment is called unchanged", "assignment.changed", (passing, answer, memory) => {
    if (isReport(passing) && isGood(answer)) memory.set("reported", true);
    const isFetched = isAt(passing, "GET", "assignment/") && asksForChanges(passing);
    if (isFetched && memory.has("reported")) callUnchanged(answer);
  }),
  broken(
    "the answer 304 has another ETag",
    "assignment.not_modified",
    atDevice("GET", "assignment/", (answer) => {
      if (answer.status === 304) answer.headers["etag"] = '"another"';
    }),
  ),

  // Reports.
  broken(
    "a report needs no intent",
    "report.required_fields",
    acceptsReport(400, (passing) => requestOf(passing)["intent_id"] === undefined),
  ),
  broken(
    "a report needs no outcome",
    "report.required_fields",
    acceptsReport(400, (passing) => requestOf(passing)["outcome"] === undefined),
  ),
  broken(
    "a report needs a key",
    "report.cancelled",
    atReport((answer, passing) => {
      const hasNoKey = requestOf(passing)["client_idempotency_key"] === undefined;
      if (isGood(answer) && hasNoKey) refuse(answer, 400, "invalid_request");
    }),
  ),
  broken(
    "an unknown outcome is refused",
    "report.unknown",
    atReport((answer, passing) => {
      if (requestOf(passing)["outcome"] === "reported_unknown") refuse(answer, 400, "invalid_request");
    }),
  ),
  broken(
    "the same key with another outcome is another report",
    "report.same_key",
    inReport((report, passing) => (report["outcome"] = requestOf(passing)["outcome"])),
  ),
  broken(
    "the report's time is in 1970",
    "report.reported_at",
    inReport((report) => (report["reported_at"] = "1970-01-01T00:00:00.000Z")),
  ),
  ...(["currency", "expires_at", "order_display_number", "handoff_target"] as const).map((field) =>
    broken(
      `the report's assignment has another ${field}`,
      "report.accepted",
      inReportedAssignment((assignment) => (assignment[field] = "another")),
    ),
  ),
  broken(
    "an intent of another route can be reported",
    "report.other_route",
    acceptsReport(404, (passing) => requestOf(passing)["intent_id"] !== 999_999_999),
  ),

  // The cashier's decision.
  broken("a settled intent can be cancelled", "attest.settles", acceptsAtTill("POST", /\/cancel\/$/)),
  broken("each attestation is another transaction", "attest.settles", (passing, answer, memory) => {
    if (isCashier(passing, "POST", /\/attest\/$/)) memory.set("count", Number(memory.get("count") ?? 0) + 1);
    inTransaction((transaction) => (transaction["transaction_id"] = memory.get("count")))(passing, answer, memory);
  }),
  broken("a cancelled intent can be attested", "cancel.by_cashier", acceptsAtTill("POST", /\/attest\/$/)),

  // Standing.
  broken(
    "a suspended companion's route is offered",
    "standing.device_suspended",
    inRoutes((route) => (route["offered"] = true)),
  ),
  broken(
    "a suspended display is served",
    "standing.display_suspended",
    acceptsAt("GET", "display/", "device_suspended", { state: "idle" }),
  ),
  broken(
    "a frozen device is served",
    "kill_switch.device",
    acceptsAt("GET", "assignment/", "device_frozen", { assignment: null }),
  ),
  broken("a resumed device stays blocked", "standing.device_suspended", (passing, answer, memory) => {
    if (answer.body?.["blocked_reason"] === "device_suspended") memory.set("blocked", true);
    if (isAt(passing, "GET", "me/") && memory.has("blocked") && answer.body !== undefined)
      answer.body["blocked_reason"] = "device_suspended";
  }),

  // Display.
  broken(
    "the display's clock is stalled",
    "display.server_time",
    goodAt("GET", "display/", (body) => (body["server_time"] = "2020-01-01T00:00:00.000Z")),
  ),
  broken(
    "the display names another intent status",
    "display.total",
    goodAt("GET", "display/", (body) => (body["intent_status"] = "processing")),
  ),
  broken(
    "a changed display is called unchanged",
    "display.total",
    atDevice("GET", "display/", (answer, passing) => {
      if (asksForChanges(passing)) callUnchanged(answer);
    }),
  ),
  broken(
    "the paid display names another order",
    "display.paid",
    goodAt("GET", "display/", (body) => {
      if (body["state"] === "paid") body["order_display_number"] = 999_999;
    }),
  ),
  broken(
    "each display gets the QR",
    "display.qr_needs_capability",
    goodAt("GET", "display/", (body) => {
      if (body["state"] === "total" && body["intent_status"] === "presented")
        body["qr_payload"] = "https://pay.example/x";
    }),
  ),
  broken(
    "the QR's amount is another one",
    "display.qr",
    goodAt("GET", "display/", (body) => {
      if (body["state"] === "qr") body["amount"] = "1.00";
    }),
  ),
  broken(
    "an unchanged display has another ETag each time",
    "display.not_modified",
    atDevice("GET", "display/", (answer, passing, memory) => {
      const count = Number(memory.get("count") ?? 0) + 1;
      memory.set("count", count);
      if (isGood(answer)) answer.headers["etag"] = `"${count}"`;
      if (answer.status === 304) accept(answer, passing.headers);
    }),
  ),
  broken(
    "an intent's reports are shown without their reference",
    "report.shown_to_cashier",
    inReportsOfIntent((report) => (report["provider_reference"] = "")),
  ),
];
