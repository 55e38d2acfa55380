/** Services with broken enrollment, snapshots, heartbeats or assignments. */
import {
  accept,
  acceptsAt,
  asksForChanges,
  atDevice,
  type BrokenService,
  broken,
  callUnchanged,
  goodAt,
  hasCredential,
  inAssignment,
  inIntent,
  inRoutes,
  isGood,
  refuse,
  requestOf,
  statusOf,
} from "./broken-service.ts";

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
const assignmentHas = (field: string, value: unknown) => inAssignment((assignment) => (assignment[field] = value));

export const BROKEN_ENTRANCES: readonly BrokenService[] = [
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
    "a spent code has another status",
    "enroll.alike_refusals",
    atDevice("POST", "enroll/", (answer, passing) => {
      if (!isGood(answer) && requestOf(passing)["code"] !== "00000-00000") answer.status = 410;
    }),
  ),
  broken(
    "an unknown code has another sentence",
    "enroll.alike_refusals",
    atDevice("POST", "enroll/", (answer, passing) => {
      if (requestOf(passing)["code"] === "00000-00000" && answer.body !== undefined) answer.body["detail"] = "Unknown.";
    }),
  ),
  broken(
    "me answers without a credential",
    "auth.bearer_needed",
    acceptsAt("GET", "me/", 401, {}, (passing) => !hasCredential(passing)),
  ),
  broken(
    "a missing credential is 403",
    "auth.bearer_needed",
    atDevice("GET", "display/", (answer, passing) => {
      if (!hasCredential(passing)) refuse(answer, 403, "forbidden");
    }),
  ),
  broken(
    "any credential may send heartbeats",
    "auth.foreign_credential",
    acceptsAt("POST", "heartbeat/", 401, {}, hasCredential),
  ),
  broken("a revoked credential stays valid", "auth.revoked", acceptsAt("GET", "me/", 401, {}, hasCredential)),
  broken("a sandbox has a provider config for real payments", "sandbox.parts", ({ path }, { body }) => {
    if (!path.endsWith("/backoffice/v1/provider-configs/")) return;
    for (const config of (body?.["provider_configs"] ?? []) as Record<string, unknown>[]) config["mode"] = "live";
  }),

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
  broken(
    "smart POS is never offered",
    "presence.live_offered",
    inRoutes((route) => (route["offered"] = false)),
  ),

  // Assignment.
  broken(
    "without work, the assignment's key is missing",
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
    inIntent((intent) => (intent["amount"] = "0.01")),
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
      inAssignment((assignment) => delete assignment[field]),
    ),
  ),
  broken("the amount has three decimals", "assignment.amount", assignmentHas("amount", "25.500")),
  broken("the amount is a number", "assignment.amount", assignmentHas("amount", 25.5)),
  broken("the assignment has another amount", "assignment.order_truth", assignmentHas("amount", "26.50")),
  broken("the assignment has another currency", "assignment.order_truth", assignmentHas("currency", "USD")),
  broken(
    "the deadline has passed at once",
    "assignment.deadline",
    assignmentHas("expires_at", "2020-01-01T00:00:00.000Z"),
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
    atDevice("GET", "assignment/", (answer, passing) => {
      if (asksForChanges(passing)) callUnchanged(answer);
    }),
  ),
  broken(
    "the assignment has no ETag",
    "assignment.not_modified",
    atDevice("GET", "assignment/", (answer) => delete answer.headers["etag"]),
  ),
];
