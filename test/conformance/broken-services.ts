/** Ways to break the service, each with the check that must notice it. The proxy applies them to the answers it forwards. */

export interface Passing {
  readonly method: string;
  /** Below the origin, without the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly requestText: string;
}

export interface Answer {
  status: number;
  headers: Record<string, string>;
  /** JSON, or undefined where the answer has no body. */
  body: Record<string, unknown> | undefined;
}

export interface BrokenService {
  readonly name: string;
  readonly caughtBy: string;
  /** Changes the answer in place; `memory` lasts for one run. */
  readonly breaks: (passing: Passing, answer: Answer, memory: Map<string, unknown>) => void;
}

const DEVICES = "/api/payments/v1/devices/";
const isAt = (passing: Passing, method: string, path: string): boolean =>
  passing.method === method && passing.path === DEVICES + path;
const isGood = ({ status }: Answer): boolean => status === 200 || status === 201;
const inner = (answer: Answer, name: string): Record<string, unknown> | undefined =>
  (answer.body?.[name] ?? undefined) as Record<string, unknown> | undefined;
const requestOf = ({ requestText }: Passing): Record<string, unknown> => {
  try {
    return JSON.parse(requestText) as Record<string, unknown>;
  } catch {
    return {};
  }
};
/** At a path of the cashier's API. */
const isCashier = ({ method, path }: Passing, wanted: string, pattern: RegExp): boolean =>
  method === wanted && path.startsWith("/api/cashier/v1/") && pattern.test(path);
const isIntentRead = (passing: Passing): boolean => isCashier(passing, "GET", /\/intents\/\d+\/$/);
const isOrderRead = (passing: Passing): boolean => isCashier(passing, "GET", /\/orders\/\d+\/$/);
const refuse = (answer: Answer, status: number, code: string): void => {
  answer.status = status;
  answer.body = { code, detail: "Broken on purpose.", request_id: "broken" };
};
const accept = (answer: Answer, body: Record<string, unknown>): void => {
  answer.status = 200;
  answer.body = body;
};

type Breaks = BrokenService["breaks"];
const atDevice =
  (
    method: string,
    path: string,
    change: (answer: Answer, passing: Passing, memory: Map<string, unknown>) => void,
  ): Breaks =>
  (passing, answer, memory) => {
    if (isAt(passing, method, path)) change(answer, passing, memory);
  };
const goodAt = (
  method: string,
  path: string,
  change: (body: Record<string, unknown>, passing: Passing) => void,
): Breaks =>
  atDevice(method, path, (answer, passing) => {
    if (isGood(answer) && answer.body !== undefined) change(answer.body, passing);
  });
const intentReads =
  (change: (intent: Record<string, unknown>, memory: Map<string, unknown>) => void): Breaks =>
  (passing, answer, memory) => {
    if (isIntentRead(passing) && isGood(answer) && answer.body !== undefined) change(answer.body, memory);
  };
const orderReads =
  (change: (order: Record<string, unknown>) => void): Breaks =>
  (passing, answer) => {
    if (isOrderRead(passing) && isGood(answer) && answer.body !== undefined) change(answer.body);
  };
const statusOf = (from: string, to: string): Breaks =>
  intentReads((intent) => {
    if (intent["status"] === from) intent["status"] = to;
  });
const reportRefusal = (change: (answer: Answer) => void): Breaks =>
  atDevice("POST", "assignment/report/", (answer) => {
    if (answer.status === 409) change(answer);
  });
const assignmentFields = [
  "intent_id",
  "intent_display_number",
  "order_display_number",
  "station_name",
  "amount",
  "currency",
  "status",
  "handoff_target",
  "expires_at",
];
const snapshotFields = [
  "device_id",
  "name",
  "kind",
  "capabilities",
  "status",
  "station_name",
  "station_status",
  "handoff_target",
  "blocked_reason",
  "server_time",
];
const displayFields = ["order_display_number", "amount", "currency", "qr_payload", "intent_status", "server_time"];
const reportFields = ["outcome", "provider_reference", "provider_code", "reported_at"];

const broken = (name: string, caughtBy: string, breaks: Breaks): BrokenService => ({ name, caughtBy, breaks });

export const BROKEN_SERVICES: readonly BrokenService[] = [
  // Enrollment.
  broken(
    "enroll gives no credential",
    "enroll.claims_code",
    goodAt("POST", "enroll/", (body) => delete body["credential"]),
  ),
  broken(
    "enroll gives scopes as text",
    "enroll.result_fields",
    goodAt("POST", "enroll/", (body) => (body["scopes"] = "all")),
  ),
  broken(
    "enroll gives no device",
    "enroll.result_fields",
    goodAt("POST", "enroll/", (body) => delete body["device"]),
  ),
  broken(
    "a code can be claimed twice",
    "enroll.credential_once",
    atDevice("POST", "enroll/", (answer, passing, memory) => {
      const code = String(requestOf(passing)["code"]);
      if (isGood(answer)) memory.set(code, answer.body);
      else if (memory.has(code)) accept(answer, memory.get(code) as Record<string, unknown>);
    }),
  ),
  broken(
    "me leaks the credential",
    "enroll.credential_once",
    goodAt("GET", "me/", (body, passing) => {
      body["credential"] = passing.headers["authorization"]?.slice("Bearer ".length);
    }),
  ),
  broken(
    "a spent code has a status of its own",
    "enroll.alike_refusals",
    atDevice("POST", "enroll/", (answer, passing) => {
      if (!isGood(answer) && requestOf(passing)["code"] !== "00000-00000") answer.status = 410;
    }),
  ),
  broken(
    "an unknown code has a sentence of its own",
    "enroll.alike_refusals",
    atDevice("POST", "enroll/", (answer, passing) => {
      if (requestOf(passing)["code"] === "00000-00000" && answer.body !== undefined) answer.body["detail"] = "Unknown.";
    }),
  ),
  broken(
    "me answers without a credential",
    "auth.bearer_needed",
    atDevice("GET", "me/", (answer, { headers }) => {
      if (headers["authorization"] === undefined) accept(answer, {});
    }),
  ),
  broken(
    "a missing credential is 403",
    "auth.bearer_needed",
    atDevice("GET", "display/", (answer, { headers }) => {
      if (headers["authorization"] === undefined) refuse(answer, 403, "forbidden");
    }),
  ),
  broken(
    "any credential may send heartbeats",
    "auth.foreign_credential",
    atDevice("POST", "heartbeat/", (answer, { headers }) => {
      if (answer.status === 401 && headers["authorization"] !== undefined) accept(answer, {});
    }),
  ),
  broken(
    "a revoked credential stays valid",
    "auth.revoked",
    atDevice("GET", "me/", (answer, { headers }) => {
      if (answer.status === 401 && headers["authorization"] !== undefined) accept(answer, {});
    }),
  ),

  // Snapshot, heartbeat, presence.
  ...snapshotFields.map((field) =>
    broken(
      `me has no ${field}`,
      field === "device_id" ? "snapshot.returned" : `snapshot.${field}`,
      goodAt("GET", "me/", (body) => delete body[field]),
    ),
  ),
  broken(
    "the heartbeat's snapshot has no name",
    "snapshot.name",
    goodAt("POST", "heartbeat/", (body) => delete body["name"]),
  ),
  broken(
    "capabilities are text",
    "snapshot.capabilities",
    goodAt("GET", "me/", (body) => (body["capabilities"] = "all")),
  ),
  broken(
    "the clock is an hour late",
    "snapshot.clock",
    goodAt("GET", "me/", (body) => {
      body["server_time"] = new Date(Date.now() - 3_600_000).toISOString();
    }),
  ),
  broken(
    "the launch reference is parsed",
    "snapshot.handoff_target_opaque",
    goodAt("GET", "me/", (body) => {
      body["handoff_target"] = String(body["handoff_target"]).toLowerCase().split("?")[0];
    }),
  ),
  broken(
    "a heartbeat needs a body",
    "heartbeat.summary",
    atDevice("POST", "heartbeat/", (answer, { requestText }) => {
      if (requestText === "") refuse(answer, 400, "invalid_request");
    }),
  ),
  broken(
    "a heartbeat must be JSON",
    "heartbeat.content_types",
    atDevice("POST", "heartbeat/", (answer, { headers }) => {
      if (/form/.test(headers["content-type"] ?? "")) refuse(answer, 415, "unsupported_media_type");
    }),
  ),
  broken("smart POS is never offered", "presence.live_offered", (passing, answer) => {
    if (isCashier(passing, "GET", /\/routes\/$/) && isGood(answer))
      for (const each of (answer.body?.["routes"] ?? []) as Record<string, unknown>[]) each["offered"] = false;
  }),

  // Assignment.
  broken(
    "no work has no assignment key",
    "assignment.nothing",
    goodAt("GET", "assignment/", (body) => {
      if (body["assignment"] === null) delete body["assignment"];
    }),
  ),
  broken(
    "the assignment has no server_time",
    "assignment.nothing",
    goodAt("GET", "assignment/", (body) => delete body["server_time"]),
  ),
  broken(
    "the intent has another amount than the order",
    "intent.created",
    intentReads((intent) => (intent["amount"] = "0.01")),
  ),
  broken("an intent is presented before it is fetched", "intent.created", statusOf("created", "presented")),
  broken("a fetched assignment is not presented", "assignment.fetched", statusOf("presented", "created")),
  broken(
    "the assignment never arrives",
    "assignment.fetched",
    goodAt("GET", "assignment/", (body) => (body["assignment"] = null)),
  ),
  ...assignmentFields.map((field) =>
    broken(
      `the assignment has no ${field}`,
      `assignment.${field}`,
      goodAt("GET", "assignment/", (body) => {
        delete (body["assignment"] as Record<string, unknown> | null)?.[field];
      }),
    ),
  ),
  broken(
    "the amount has three decimals",
    "assignment.amount",
    goodAt("GET", "assignment/", (body) => {
      const assignment = body["assignment"] as Record<string, unknown> | null;
      if (assignment !== null) assignment["amount"] = "25.500";
    }),
  ),
  broken(
    "the amount is a number",
    "assignment.amount",
    goodAt("GET", "assignment/", (body) => {
      const assignment = body["assignment"] as Record<string, unknown> | null;
      if (assignment !== null) assignment["amount"] = 25.5;
    }),
  ),
  broken(
    "the assignment has another amount",
    "assignment.order_truth",
    goodAt("GET", "assignment/", (body) => {
      const assignment = body["assignment"] as Record<string, unknown> | null;
      if (assignment !== null) assignment["amount"] = "26.50";
    }),
  ),
  broken(
    "the assignment has another currency",
    "assignment.order_truth",
    goodAt("GET", "assignment/", (body) => {
      const assignment = body["assignment"] as Record<string, unknown> | null;
      if (assignment !== null) assignment["currency"] = "USD";
    }),
  ),
  broken(
    "the deadline has passed at once",
    "assignment.deadline",
    goodAt("GET", "assignment/", (body) => {
      const assignment = body["assignment"] as Record<string, unknown> | null;
      if (assignment !== null) assignment["expires_at"] = "2020-01-01T00:00:00.000Z";
    }),
  ),
  broken(
    "an unchanged assignment is 200",
    "assignment.not_modified",
    atDevice("GET", "assignment/", (answer) => {
      if (answer.status === 304) accept(answer, { assignment: null, server_time: new Date().toISOString() });
    }),
  ),
  broken(
    "any If-None-Match is 304",
    "assignment.not_modified",
    atDevice("GET", "assignment/", (answer, { headers }) => {
      if (headers["if-none-match"] === undefined) return;
      answer.status = 304;
      answer.body = undefined;
    }),
  ),
  broken(
    "the assignment has no ETag",
    "assignment.not_modified",
    atDevice("GET", "assignment/", (answer) => delete answer.headers["etag"]),
  ),

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
    "the display has a state of its own",
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
      ["amount", "currency", "order_display_number"].includes(field) ? "display.total" : `display.${field}`,
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
  broken("the throttle does not say when", "throttle.per_credential", (_passing, answer) => {
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
