/** Enrollment: a one-time code becomes a credential, once. */
import { setTimeout as delay } from "node:timers/promises";
import { clientLimits } from "../../limits.ts";
import { type Check, perRun } from "../check.ts";
import { expectField, expectNot, expectRefused, expectSame, expectStatus, expectThat, objectOf } from "../expect.ts";
import type { SuiteAnswer } from "../http.ts";
import { CannotRun, type World } from "../world.ts";

const capability = "enrollment";
const ENDPOINTS = [
  ["POST", "heartbeat/"],
  ["GET", "me/"],
  ["GET", "assignment/"],
  ["POST", "assignment/report/"],
  ["GET", "display/"],
] as const;

/** The answer to the second claim of a code. */
const spentIn = perRun<{ answer?: SuiteAnswer }>(() => ({}));

/** Headers that differ from answer to answer. The length depends on the request id. */
const OF_ONE_ANSWER = /^(?:date|content-length|x-request-id|retry-after|ratelimit.*|connection|keep-alive)$/;
/** The time that an answer took, or a count. */
const NUMBER = /^[\d.]+$/;
/** The headers of an answer. Of those that change with each answer, only the names. */
const headersOf = ({ headers }: SuiteAnswer, changing: ReadonlySet<string>): object =>
  Object.fromEntries(
    [...headers]
      .filter(([name]) => !OF_ONE_ANSWER.test(name))
      .map(([name, value]) => [name, changing.has(name) || NUMBER.test(value) ? "" : value]),
  );

/** The headers that differ between two answers to the same request: a proxy may give each answer an id. */
async function changingHeaders(world: World): Promise<ReadonlySet<string>> {
  const one = (await world.anonymous.send("GET", "me/")).headers;
  const other = (await world.anonymous.send("GET", "me/")).headers;
  return new Set([...one.keys(), ...other.keys()].filter((name) => one.get(name) !== other.get(name)));
}

/** A refusal without the id of its request. */
const withoutRequest = (body: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(body).filter(([name]) => name !== "request_id"));

export const enrollmentChecks: readonly Check[] = [
  {
    id: "enroll.claims_code",
    capability,
    quotes: [
      "The device claims the code once, anonymously, and receives its credential; the credential is returned only once.",
      "All device paths are under `{base_url}/api/payments/v1/`.",
      "All paths below are relative to `{base_url}`.",
      "The device interface carries the version in the path segment `v1` under `/api/payments/`.",
      "Request JSON: `code` (string, required): the one-time enrollment code.",
      "payments_device_enroll | POST | /api/payments/v1/devices/enroll/ | none",
    ],
    async run(world) {
      await world.enroll("companion");
      await world.enroll("display");
    },
  },
  {
    id: "enroll.result_fields",
    capability,
    after: ["enroll.claims_code"],
    quotes: [
      "Response JSON: Enrollment result (credential, scopes, device).",
      "credential | string (bearer credential, returned only once) | yes",
      "scopes | array of string | yes",
      "device | Device snapshot | yes",
      "The enroll response returns `scopes` (array of string).",
    ],
    async run(world) {
      for (const which of ["companion", "display"] as const) {
        const body = objectOf(world.enrollment(which).answer);
        expectField(body, "credential", "text");
        expectField(body, "scopes", "strings");
        expectNot("`scopes`", body["scopes"], []);
        expectField(body, "device", "object");
      }
    },
  },
  {
    id: "enroll.credential_once",
    capability,
    after: ["enroll.claims_code"],
    quotes: [
      "The credential is returned exactly once.",
      "The credential is obtained by claiming an enrollment code at enroll and is returned only once.",
    ],
    async run(world) {
      const spent = await world.claim(world.enrollment("companion").code);
      spentIn(world).answer = spent;
      const cache = world.enrollment("companion").answer.headers.get("cache-control");
      expectThat("header `Cache-Control` with the credential", /\bno-store\b/.test(cache ?? ""), "no-store", cache);
      expectThat("second claim of a code", spent.status >= 400, "a refusal", spent.status);
      expectNot("the credential of another device", world.display.token, world.companion.token);
      const me = await world.companion.send("GET", "me/");
      expectThat("answer to me", !me.text.includes(world.companion.token), "no credential", "the credential");
    },
  },
  {
    id: "enroll.alike_refusals",
    capability,
    after: ["enroll.credential_once"],
    quotes: [
      "Unknown, already spent and expired codes answer identically.",
      "At enroll, unknown, spent and expired codes produce the same answer.",
      "The enrollment code itself is the secret for that anonymous call and is one-time.",
    ],
    async run(world) {
      const { answer: spent } = spentIn(world);
      if (spent === undefined) throw new CannotRun("No spent code was tried.");
      const changing = await changingHeaders(world);
      expectAlike("for a spent and for an unknown code", spent, await world.claim("00000-00000"), changing);
    },
  },
  {
    id: "enroll.code_required",
    capability,
    quotes: ["`code` (string, required): the one-time enrollment code."],
    async run(world) {
      for (const json of [{}, { code: null }, { code: 5 }])
        expectStatus(await world.anonymous.send("POST", "enroll/", { json }), 400);
    },
  },
  {
    id: "auth.bearer_needed",
    capability,
    quotes: [
      "Every endpoint except enroll requires the device bearer credential.",
      "Device endpoints other than enroll use `Authorization: Bearer <DEVICE_CREDENTIAL>`.",
    ],
    async run(world) {
      for (const [method, path] of ENDPOINTS) {
        const answer = await world.anonymous.send(method, path);
        expectRefused(answer, 401);
        const asked = answer.headers.get("www-authenticate");
        expectThat("header `WWW-Authenticate` of 401", /^bearer\b/i.test(asked ?? ""), "Bearer", asked);
      }
    },
  },
  {
    id: "auth.bearer_scheme",
    capability,
    after: ["enroll.claims_code"],
    quotes: ["Device endpoints other than enroll use `Authorization: Bearer <DEVICE_CREDENTIAL>`."],
    async run(world) {
      const { token } = world.display;
      const basic = Buffer.from(`${world.sandbox.displayId}:${token}`).toString("base64");
      for (const authorization of [token, `Basic ${basic}`, "Bearer"])
        expectRefused(await world.anonymous.send("GET", "me/", { headers: { authorization } }), 401);
    },
  },
  {
    id: "auth.foreign_credential",
    capability,
    quotes: ["Every endpoint except enroll requires the device bearer credential."],
    async run(world) {
      const headers = { authorization: `Bearer dp_00_${"A".repeat(43)}` };
      for (const [method, path] of ENDPOINTS) expectRefused(await world.anonymous.send(method, path, { headers }), 401);
    },
  },
  {
    id: "auth.session_is_no_credential",
    capability,
    quotes: [
      "Every endpoint except enroll requires the device bearer credential.",
      "Cashier and owner act through their own sessions; the cashier must hold the payment permission.",
    ],
    async run(world) {
      for (const person of [world.cashier, world.owner]) {
        const headers = { authorization: `Bearer ${person.token}` };
        for (const [method, path] of ENDPOINTS)
          expectRefused(await world.anonymous.send(method, path, { headers }), 401);
      }
    },
  },
];

const expiringIn = perRun<{ code: string; expiresAtMs: number }>(() => ({ code: "", expiresAtMs: 0 }));
/** The shortest lifetime of a code. */
const LIFETIME_SECONDS = 10;

/** The display no longer needs its credential. Its new code expires while other checks run. */
export const expiringCodeChecks: readonly Check[] = [
  {
    id: "enroll.code_expires",
    capability,
    after: ["enroll.alike_refusals"],
    quotes: ["The owner issues a one-time enrollment code and gives it to the device."],
    async run(world) {
      const code = await world.resetDevice("display", { lifetime_seconds: LIFETIME_SECONDS });
      Object.assign(expiringIn(world), { code, expiresAtMs: performance.now() + LIFETIME_SECONDS * 1_000 });
    },
  },
];

export const expiredCodeChecks: readonly Check[] = [
  {
    id: "enroll.expired_alike",
    capability,
    after: ["enroll.code_expires"],
    quotes: [
      "Unknown, already spent and expired codes answer identically.",
      "At enroll, unknown, spent and expired codes produce the same answer.",
    ],
    async run(world) {
      const { code, expiresAtMs } = expiringIn(world);
      const waitMs = expiresAtMs + clientLimits.conformancePollMs - performance.now();
      if (waitMs > 0) await delay(waitMs, undefined, { signal: world.wire.signal });
      const { answer: spent } = spentIn(world);
      if (spent === undefined) throw new CannotRun("No spent code was tried.");
      const changing = await changingHeaders(world);
      expectAlike("for an expired and for a spent code", await world.claim(code), spent, changing);
    },
  },
];

/** Both answers have the same status, body and headers, except for what differs from answer to answer. */
function expectAlike(what: string, one: SuiteAnswer, other: SuiteAnswer, changing: ReadonlySet<string>): void {
  expectSame(`status ${what}`, one.status, other.status);
  expectSame(
    `answer ${what}`,
    withoutRequest(expectRefused(one, one.status)),
    withoutRequest(expectRefused(other, other.status)),
  );
  expectSame(`headers ${what}`, headersOf(one, changing), headersOf(other, changing));
}

/** These run while a collection of another check lapses, because they need neither a collection nor a heartbeat. */
export const scopeChecks: readonly Check[] = [
  {
    id: "scopes.by_kind",
    capability,
    after: ["enroll.claims_code"],
    quotes: [
      "Device kinds that appear: a smart POS companion (reads assignments, reports outcomes) and a customer display (reads display state).",
    ],
    async run(world) {
      expectRefused(await world.display.send("GET", "assignment/"), 403);
      const json = { intent_id: 1, outcome: "reported_success" };
      expectRefused(await world.display.send("POST", "assignment/report/", { json }), 403);
      expectRefused(await world.companion.send("GET", "display/"), 403);
    },
  },
];

/** This runs between the companion's other checks, because a new credential has a new throttle. */
export const revocationChecks: readonly Check[] = [
  {
    id: "auth.revoked",
    capability,
    after: ["attest.settles"],
    quotes: [
      "The credential can be revoked (the conformance run revokes the one it mints).",
      "The owner issues a one-time enrollment code and gives it to the device.",
    ],
    async run(world) {
      const before = world.companion;
      await world.enrollCompanionAgain();
      await world.until(
        "status for the credential from before the reset",
        2_000,
        async () => (await before.unpaced().send("GET", "me/")).status,
        (status) => status === 401,
      );
      for (const [method, path] of ENDPOINTS) expectRefused(await before.unpaced().send(method, path), 401);
      expectNot("the new credential", world.companion.token, before.token);
      expectStatus(await world.companion.send("GET", "me/"), 200);
    },
  },
];
