/** Services that break a rule of the contract in a case that its sentence does not name: another state, party or time. */
import {
  accept,
  acceptsAt,
  acceptsAtTill,
  acceptsReport,
  asksForChanges,
  atCashier,
  atDevice,
  atReport,
  type Breaks,
  type BrokenService,
  broken,
  callUnchanged,
  createsIntent,
  goodAt,
  INTENT,
  inAssignment,
  inIntent,
  inner,
  inReport,
  inReportsOfIntent,
  inRoutes,
  inTransaction,
  isAt,
  isCashier,
  isGood,
  isReport,
  refuse,
  refusesAtTill,
  requestOf,
  statusOf,
} from "./broken-service.ts";

/** Notes when a request has had an effect, and from then on changes later answers. */
const once =
  (happens: (...args: Parameters<Breaks>) => boolean, then: Breaks): Breaks =>
  (passing, answer, memory) => {
    if (happens(passing, answer, memory)) memory.set("happened", true);
    else if (memory.has("happened")) then(passing, answer, memory);
  };
const reportedAs = (outcome: string, other: string): Breaks =>
  inReport((report, passing) => {
    if (requestOf(passing)["outcome"] === outcome) report["outcome"] = other;
  });
/** Changes the answer to the claim of a code whose lifetime the check has shortened. */
const expiredCode =
  (change: (answer: Parameters<Breaks>[1]) => void): Breaks =>
  (passing, answer, memory) => {
    const { code, lifetime_seconds: lifetime } = requestOf(passing);
    if (passing.path.endsWith("/enrollment-codes/") && lifetime !== undefined)
      memory.set("expiring", answer.body?.["code"]);
    if (isAt(passing, "POST", "enroll/") && code === memory.get("expiring")) change(answer);
  };
const byDevice = ({ headers }: Parameters<Breaks>[0]): boolean =>
  headers["authorization"]?.startsWith("Bearer dp_") === true;
const ENDED = /\/(?:attest|cancel)\/$/;
const handsOutAfterEnd = (status: string): Breaks => {
  const handsOut = goodAt("GET", "assignment/", (body) => (body["assignment"] ??= { intent_id: 1 }));
  return (passing, answer, memory) => {
    if (isCashier(passing, "GET", INTENT) && answer.body?.["status"] === status) memory.set("ended", true);
    if (memory.has("ended")) handsOut(passing, answer, memory);
  };
};

export const BROKEN_RULES: readonly BrokenService[] = [
  // Enrollment and authentication.
  broken(
    "a code is not required",
    "enroll.code_required",
    acceptsAt("POST", "enroll/", 400, { credential: "dp_x" }, (passing) => requestOf(passing)["code"] === undefined),
  ),
  broken(
    "an expired code has another status",
    "enroll.expired_alike",
    expiredCode((answer) => {
      if (!isGood(answer)) answer.status = 410;
    }),
  ),
  broken(
    "an expired code can be claimed",
    "enroll.expired_alike",
    expiredCode((answer) => accept(answer, { credential: "dp_x", scopes: [], device: {} })),
  ),
  broken(
    "a device is enrolled without scopes",
    "enroll.result_fields",
    goodAt("POST", "enroll/", (body) => (body["scopes"] = [])),
  ),
  broken(
    "a credential is valid without its scheme",
    "auth.bearer_scheme",
    acceptsAt("GET", "me/", 401, {}, ({ headers }) => headers["authorization"]?.startsWith("dp_") === true),
  ),
  broken(
    "a credential is valid as a password",
    "auth.bearer_scheme",
    acceptsAt("GET", "me/", 401, {}, ({ headers }) => headers["authorization"]?.startsWith("Basic ") === true),
  ),
  broken(
    "a cashier's session is valid at a display",
    "auth.session_is_no_credential",
    atDevice("GET", "display/", (answer, { headers }) => {
      const token = headers["authorization"]?.slice("Bearer ".length) ?? "dp_";
      if (answer.status === 401 && !token.startsWith("dp_")) accept(answer, { state: "idle" });
    }),
  ),

  // Snapshot, presence.
  broken(
    "a blank launch reference is null",
    "snapshot.handoff_target_opaque",
    goodAt("GET", "me/", (body) => (body["handoff_target"] ||= null)),
  ),
  broken(
    "a blank launch reference withdraws the route",
    "snapshot.handoff_target_opaque",
    (passing, answer, memory) => {
      const { handoff_target: target } = requestOf(passing);
      if (passing.method === "PATCH" && target !== undefined) memory.set("blank", target === "");
      if (memory.get("blank") === true) inRoutes((route) => (route["offered"] = false))(passing, answer, memory);
    },
  ),
  broken(
    "a heartbeat shows the earlier launch reference",
    "snapshot.handoff_target_opaque",
    atDevice("POST", "heartbeat/", (answer, _, memory) => {
      if (answer.body === undefined) return;
      memory.set("target", memory.get("target") ?? answer.body["handoff_target"]);
      answer.body["handoff_target"] = memory.get("target");
    }),
  ),
  broken("the clock of heartbeats is stalled", "answers.clock_runs", (passing, answer, memory) => {
    if (!isAt(passing, "POST", "heartbeat/") || answer.body === undefined) return;
    memory.set("time", memory.get("time") ?? answer.body["server_time"]);
    answer.body["server_time"] = memory.get("time");
  }),
  broken(
    "assignments have another clock",
    "answers.clock_runs",
    goodAt("GET", "assignment/", (body) => {
      body["server_time"] = new Date(Date.parse(String(body["server_time"])) - 5_000).toISOString();
    }),
  ),
  broken("a summary may be text", "heartbeat.summary", acceptsAt("POST", "heartbeat/", 400)),
  broken("a silent device is handed a collection", "presence.silent_not_collected", createsIntent("route_not_offered")),
  broken("a heartbeat does not restore the route", "presence.heartbeat_restores", (passing, answer, memory) => {
    if (!isCashier(passing, "GET", /\/routes\/$/)) return;
    const routes = (answer.body?.["routes"] ?? []) as Record<string, unknown>[];
    const smartPos = routes.find(({ route }) => route === "smart_pos");
    if (smartPos?.["offered"] === true) memory.set("offered", true);
    else if (memory.has("offered")) memory.set("withdrawn", true);
    if (memory.has("withdrawn") && smartPos !== undefined) smartPos["offered"] = false;
  }),

  broken(
    "a summary renames the device",
    "heartbeat.summary",
    goodAt("POST", "heartbeat/", (body, passing) => {
      const summary = requestOf(passing)["summary"] as Record<string, unknown> | undefined;
      if (summary?.["name"] !== undefined) body["name"] = summary["name"];
    }),
  ),
  broken("a device that polls its assignment is live", "presence.silent_withdrawn", (passing, answer, memory) => {
    if (isAt(passing, "GET", "assignment/")) memory.set("polledAtMs", performance.now());
    const isLive = performance.now() - Number(memory.get("polledAtMs") ?? -Infinity) < 25_000;
    if (isLive) inRoutes((route) => (route["offered"] = true))(passing, answer, memory);
  }),

  // Assignments.
  broken("a cancelled collection is called unchanged", "assignment.cancelled", (passing, answer, memory) => {
    if (isCashier(passing, "POST", /\/cancel\/$/)) memory.set("cancelled", true);
    const isFetched = isAt(passing, "GET", "assignment/") && asksForChanges(passing);
    if (isFetched && memory.has("cancelled")) callUnchanged(answer);
  }),
  broken(
    "each fetch moves the deadline",
    "assignment.not_modified",
    atDevice("GET", "assignment/", (answer, _, memory) => {
      const assignment = inner(answer, "assignment");
      if (assignment === undefined) return;
      const moves = Number(memory.get("moves") ?? 0);
      memory.set("moves", moves + 1);
      const expiresAtMs = Date.parse(String(assignment["expires_at"])) + moves * 1_000;
      assignment["expires_at"] = new Date(expiresAtMs).toISOString();
    }),
  ),
  broken("a heartbeat presents the collection", "intent.created", (passing, answer, memory) => {
    if (isCashier(passing, "POST", /\/intents\/$/)) memory.set("collecting", true);
    else if (memory.has("collecting") && isAt(passing, "POST", "heartbeat/")) memory.set("beaten", true);
    if (memory.has("beaten")) statusOf("created", "presented")(passing, answer, memory);
  }),
  broken(
    "the assignment has the status from before the fetch",
    "assignment.presented",
    inAssignment((assignment) => {
      if (assignment["status"] === "presented") assignment["status"] = "created";
    }),
  ),
  broken("a cancelled collection is still handed out", "assignment.cancelled", handsOutAfterEnd("cancelled")),
  broken("a lapsed collection is still handed out", "expiry.expires", handsOutAfterEnd("expired")),
  broken(
    "an intent lapses minutes after its deadline",
    "expiry.expires",
    inIntent((intent) => {
      if (intent["status"] === "expired")
        intent["ended_at"] = new Date(Date.parse(String(intent["expires_at"])) + 120_000).toISOString();
    }),
  ),
  broken(
    "an expired intent keeps its order",
    "expiry.collected_again",
    once(
      (passing, answer) => isCashier(passing, "GET", INTENT) && answer.body?.["status"] === "expired",
      refusesAtTill("POST", /\/intents\/$/, 409, "collection_active"),
    ),
  ),
  broken("the intent's amount follows its order", "intent.snapshotted", (passing, answer, memory) => {
    if (isCashier(passing, "PUT", /\/lines\/$/)) memory.set("total", answer.body?.["total"]);
    inIntent((intent) => (intent["amount"] = memory.get("total") ?? intent["amount"]))(passing, answer, memory);
  }),
  broken("an order that has changed is settled", "intent.snapshotted", acceptsAtTill("POST", /\/attest\/$/, 409)),

  // Reports.
  broken(
    "a decline is kept as a cancellation",
    "report.declined",
    reportedAs("reported_declined", "reported_cancelled"),
  ),
  broken(
    "a cancellation is kept as a decline",
    "report.cancelled",
    reportedAs("reported_cancelled", "reported_declined"),
  ),
  broken(
    "an unknown outcome is kept as a decline",
    "report.unknown",
    reportedAs("reported_unknown", "reported_declined"),
  ),
  broken(
    "the cashier sees a success where the outcome is unknown",
    "report.unknown",
    inReportsOfIntent((report) => {
      if (report["outcome"] === "reported_unknown") report["outcome"] = "reported_success";
    }),
  ),
  broken(
    "a report without a reference has no field for it",
    "report.declined",
    inReport((report, passing) => {
      if (requestOf(passing)["provider_reference"] === undefined) delete report["provider_reference"];
    }),
  ),
  broken(
    "a report without a code has null for it",
    "report.declined",
    inReport((report, passing) => {
      if (requestOf(passing)["provider_code"] === undefined) report["provider_code"] = null;
    }),
  ),
  broken(
    "the cashier's view has no reports at all",
    "report.shown_to_cashier",
    inIntent((intent) => delete intent["reports"]),
  ),
  broken(
    "a repeated report shows the current assignment",
    "report.same_key",
    atReport((answer, passing, memory) => {
      const key = `key ${String(requestOf(passing)["client_idempotency_key"])}`;
      const assignment = inner(answer, "assignment");
      if (assignment !== undefined && memory.has(key)) assignment["expires_at"] = new Date().toISOString();
      memory.set(key, true);
    }),
  ),
  broken(
    "a repeated report is refused once the intent has ended",
    "report.same_key_later",
    once(
      (passing) => isCashier(passing, "POST", ENDED),
      atReport((answer) => {
        if (isGood(answer)) {
          refuse(answer, 409, "intent_not_actionable");
          Object.assign(answer.body ?? {}, { status: "succeeded" });
        }
      }),
    ),
  ),
  broken(
    "the id of an intent may be text",
    "report.required_fields",
    atReport((answer, passing) => {
      if (typeof requestOf(passing)["intent_id"] === "string") refuse(answer, 404, "handoff_not_assigned");
    }),
  ),
  broken(
    "a reported intent has an end",
    "report.processing",
    inIntent((intent) => {
      if (intent["status"] === "processing") intent["ended_at"] = new Date().toISOString();
    }),
  ),

  broken(
    "a second report replaces the first",
    "report.no_money_field",
    inIntent((intent) => {
      const reports = intent["reports"] as unknown[];
      intent["reports"] = reports.slice(-1);
    }),
  ),

  // The cashier's decision and settlement.
  broken(
    "a decline cannot be attested",
    "attest.after_decline",
    once(
      (passing, answer) => isReport(passing) && inner(answer, "report")?.["outcome"] === "reported_declined",
      refusesAtTill("POST", /\/attest\/$/, 409, "evidence_required"),
    ),
  ),
  broken(
    "a collection without a report is attested",
    "attest.needs_evidence",
    acceptsAtTill("POST", /\/attest\/$/, "evidence_required"),
  ),
  ...["attest", "cancel"].map((decision) =>
    broken(`a device's credential may ${decision}`, "settle.cashier_only", (passing, answer) => {
      if (byDevice(passing) && isCashier(passing, "POST", new RegExp(`/${decision}/$`))) accept(answer, {});
    }),
  ),
  broken(
    "an owner collects without the payment permission",
    "settle.cashier_only",
    acceptsAtTill("POST", /\/attest\/$/, 403),
  ),
  broken(
    "a sale has another currency",
    "settle.cash",
    inTransaction((transaction) => (transaction["currency"] = "USD")),
  ),
  broken(
    "a QR payment settles another amount",
    "qr.confirmed_by_provider",
    inTransaction((transaction) => (transaction["amount"] = "24.00"), "dynamic_qr"),
  ),
  broken("a duplicate callback is another sale", "qr.duplicate_callback", (passing, answer, memory) => {
    inTransaction((transaction) => {
      const sales = Number(memory.get("sales") ?? 0);
      transaction["transaction_id"] = Number(transaction["transaction_id"]) + sales;
      memory.set("sales", sales + 1);
    }, "dynamic_qr")(passing, answer, memory);
  }),
  ...Object.entries({ "eleven digits": "10000000000.00", "three decimals": "0.001" }).map(([digits, amount]) =>
    broken(
      `an amount may have ${digits}`,
      "amount.limits",
      atCashier("POST", /\/orders\/$/, (answer, { requestText }) => {
        if (requestText.includes(amount)) accept(answer, { order_id: 1 });
      }),
    ),
  ),

  // Throttles, standing and kill switches.
  broken("all devices of a station have one throttle", "throttle.per_credential", (passing, answer, memory) => {
    if (answer.status === 429) memory.set("throttled", true);
    if (memory.has("throttled") && isAt(passing, "GET", "me/")) {
      answer.headers["retry-after"] = "1";
      refuse(answer, 429, "throttled");
    }
  }),
  broken(
    "a suspended device's heartbeats are refused",
    "standing.device_suspended",
    atDevice("POST", "heartbeat/", (answer) => {
      if (answer.body?.["blocked_reason"] === "device_suspended") refuse(answer, 403, "device_suspended");
    }),
  ),
  broken("a frozen station's companion may report", "standing.report_refused", acceptsReport("station_frozen")),
  broken(
    "a frozen station's display is served",
    "kill_switch.station",
    acceptsAt("GET", "display/", "station_frozen", { state: "idle" }),
  ),
  broken(
    "a suspended station's companion is served",
    "standing.station_suspended",
    acceptsAt("GET", "assignment/", "station_suspended", { assignment: null }),
  ),
  broken(
    "a suspended station has the reason of a device",
    "standing.station_suspended",
    atDevice("GET", "assignment/", (answer) => {
      if (answer.body?.["code"] === "station_suspended") refuse(answer, 403, "device_suspended");
    }),
  ),
  broken(
    "a frozen device's snapshot has no reason",
    "kill_switch.device",
    goodAt("GET", "me/", (body) => {
      if (body["blocked_reason"] === "device_frozen") body["blocked_reason"] = "";
    }),
  ),
  broken(
    "a freeze withdraws cash",
    "kill_switch.station",
    inRoutes((route, routes) => {
      if (routes.some(({ reason }) => reason === "station_frozen")) route["offered"] = false;
    }),
  ),

  // Display.
  broken("a paid display is called unchanged", "display.paid", (passing, answer, memory) => {
    if (!isAt(passing, "GET", "display/")) return;
    if (answer.body?.["state"] === "qr") memory.set("qr", true);
    if (memory.has("qr") && asksForChanges(passing)) callUnchanged(answer);
  }),
  broken(
    "a display keeps a capability that it no longer has",
    "display.qr_needs_capability",
    (passing, answer, memory) => {
      if (!isAt(passing, "GET", "me/") && !isAt(passing, "POST", "enroll/")) return;
      const device = inner(answer, "device") ?? answer.body;
      if (device?.["kind"] !== "customer_display") return;
      memory.set("capabilities", memory.get("capabilities") ?? device["capabilities"]);
      device["capabilities"] = memory.get("capabilities");
    },
  ),
  broken(
    "the QR is shown in another currency",
    "display.qr",
    goodAt("GET", "display/", (body) => {
      if (body["state"] === "qr") body["currency"] = "USD";
    }),
  ),
  broken(
    "the QR is shown for a collection that has ended",
    "display.qr",
    goodAt("GET", "display/", (body) => {
      if (body["state"] === "qr") body["intent_status"] = "cancelled";
    }),
  ),
];

/** Services that keep something after a run (the exit code is 3), with the line that the run prints about it. */
export const KEEPING_SERVICES: readonly (Pick<BrokenService, "name" | "breaks"> & { readonly leaves: string })[] = [
  {
    name: "a reset leaves the credentials valid",
    leaves: "a credential is valid",
    breaks: acceptsAt("GET", "me/", 401),
  },
  {
    name: "a reset leaves the station leased",
    leaves: "the station is leased",
    breaks: (passing, answer) => {
      if (/\/backoffice\/.*\/lease\/$/.test(passing.path) && answer.body !== undefined)
        answer.body["lease"] = { cashier_id: 1 };
    },
  },
  {
    name: "a reset leaves an order open",
    leaves: "an order is open",
    breaks: (passing, answer) => {
      if (passing.path.endsWith("/backoffice/v1/orders/") && answer.body !== undefined)
        answer.body["orders"] = [{ order_id: 1 }];
    },
  },
  {
    name: "a reset leaves the cashier logged in",
    leaves: "the cashier's session is open",
    breaks: acceptsAtTill("GET", /\/stations\/$/, 401, { stations: [] }),
  },
  {
    name: "a reset leaves a collection open",
    leaves: "a collection is open",
    breaks: (passing, answer, memory) => {
      const { station_id: stationId } = answer.body ?? {};
      if (passing.path.endsWith("/reset/")) memory.set("station", stationId);
      if (passing.path.endsWith("/backoffice/v1/active-intents/") && answer.body !== undefined)
        answer.body["active_intents"] = [{ station_id: memory.get("station") }];
    },
  },
  {
    name: "a reset leaves the station frozen",
    leaves: "something is frozen",
    breaks: (passing, answer, memory) => {
      const { station_id: id } = answer.body ?? {};
      if (passing.path.endsWith("/reset/")) memory.set("station", id);
      if (passing.path.endsWith("/backoffice/v1/kill-switches/") && answer.body !== undefined)
        answer.body["kill_switches"] = [{ subject: { kind: "station", id: memory.get("station") } }];
    },
  },
  {
    name: "a reset leaves a device with other settings",
    leaves: "a device has other settings than before",
    breaks: (passing, answer, memory) => {
      if (passing.path.endsWith("/reset/")) memory.set("resets", Number(memory.get("resets") ?? 0) + 1);
      if (/\/backoffice\/v1\/devices\/\d+\/$/.test(passing.path) && memory.get("resets") === 2)
        Object.assign(answer.body ?? {}, { capabilities: [] });
    },
  },
  {
    name: "the owner cannot log out",
    leaves: "the owner's session is open",
    breaks: (passing, answer) => {
      if (passing.path.endsWith("/backoffice/v1/session/") && answer.status === 401) accept(answer, {});
    },
  },
];
