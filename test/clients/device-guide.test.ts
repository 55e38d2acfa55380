/** `docs/devices.md`: its shell lines run against the real system. Its numbers and codes are those of the program. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { KIT_LIMITS } from "../../clients/device-kit/limits.ts";
import { errorCodesOf } from "../../gateway/http/documents/error-replies.ts";
import { ERRORS, type ErrorCode } from "../../gateway/http/errors.ts";
import { LIMITS } from "../../gateway/limits.ts";
import { CREDENTIAL_RATE } from "../../gateway/read-model/throttles.ts";
import { routes } from "../../gateway/routes.ts";
import { DEFAULT_MACHINE_SETTINGS } from "../../machines/settings.ts";
import { BLOCKED_REASONS } from "../../machines/standing.ts";
import { deviceGuide, runGuideLine } from "../support/guide.ts";
import { logIn, type Person } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";

const runBlock = <T>(mark: string, variables: Record<string, string>): Promise<T> =>
  runGuideLine<T>(deviceGuide, mark, variables);

describe("device guide: the shell lines", () => {
  let system: TestSystem;
  let cashier: Person;
  let variables: Record<string, string>;
  let intentPath: string;

  beforeAll(async () => {
    system = await sharedSystem({ claims: true });
    cashier = await logIn(system.baseUrl, "cashier", system.cashier);
    const [station] = system.sandbox.stations;
    const code = station?.devices.find(({ kind }) => kind === "smart_pos_companion")?.enrollmentCode ?? "";
    const root = `stations/${station?.stationId}`;
    await cashier.good("POST", `${root}/lease/`);
    variables = { BASE_URL: system.baseUrl, CODE: code, ETAG: "", KEY: "key-of-the-guide" };
    const enrolled = await runBlock<{ credential: string }>("/enroll/", variables);
    variables["CREDENTIAL"] = enrolled.credential;
    const order = await cashier.good<{ order_id: number }>("POST", `${root}/orders/`, {
      body: { lines: [{ name: "Soup", quantity: 2, unit_amount: "12.50" }] },
    });
    await runBlock("/heartbeat/", variables);
    const body = { order_id: order.order_id, route: "smart_pos" };
    // The heartbeat reaches the station a moment after its answer.
    const intent = await vi.waitUntil(
      async () => {
        const answer = await cashier.call<{ intent_id: number }>("POST", `${root}/intents/`, { body });
        return answer.status === 201 ? answer.body : undefined;
      },
      { timeout: 60_000 },
    );
    intentPath = `${root}/intents/${intent.intent_id}/`;
    variables["INTENT_ID"] = String(intent.intent_id);
  });
  afterAll(() => system.stop());

  it("for a companion: fetch the assignment, report it, and repeat the report with the same answer", async () => {
    const fetched = await runBlock<{ assignment: object }>('devices/assignment/"', variables);
    expect(fetched.assignment).toMatchObject({ amount: "25.00", status: "presented" });
    const first = await runBlock<object>("/report/", variables);
    expect(first).toMatchObject({ report: { outcome: "reported_success" }, assignment: { status: "processing" } });
    expect(await runBlock<object>("/report/", variables)).toEqual(first);
    expect(await cashier.good("GET", intentPath)).toMatchObject({ report_count: 1, status: "processing" });
  });

  it("for an owner: reset a device and issue a code, with which the device enrolls again and reads its snapshot", async () => {
    const display = system.sandbox.stations[0]?.devices.find(({ kind }) => kind === "customer_display");
    const own: Record<string, string> = {
      BASE_URL: system.baseUrl,
      OWNER_EMAIL: system.owner.email,
      OWNER_PASSWORD: system.owner.password,
      DEVICE_ID: String(display?.deviceId),
      CODE: display?.enrollmentCode ?? "",
    };
    await runBlock("/enroll/", own);
    own["OWNER"] = (await runBlock<{ token: string }>("/session/", own)).token;
    own["STATION_ID"] = String(system.sandbox.stations[0]?.stationId);
    const registered = await runBlock<{ device_id: number }>('v1/devices/" -H "Authorization', own);
    expect(registered).toMatchObject({ status: "pending", kind: "customer_display" });
    expect(await runBlock<object>("/reset/", own)).toMatchObject({ status: "pending" });
    own["CODE"] = (await runBlock<{ code: string }>("/enrollment-codes/", own)).code;
    own["CREDENTIAL"] = (await runBlock<{ credential: string }>("/enroll/", own)).credential;
    expect(await runBlock<object>("devices/me/", own)).toMatchObject({ device_id: display?.deviceId });
  });
});

describe("device guide: the table of answers", () => {
  const rows = deviceGuide
    .slice(deviceGuide.indexOf("## What to do on each answer"))
    .split("\n")
    .filter((line) => /^\| \d{3} \| `/.test(line))
    .map((line) => line.split("|").map((cell) => cell.trim()))
    .flatMap(([, status, codes = ""]) => [...codes.matchAll(/`(\w+)`/g)].map((match) => ({ code: match[1], status })));

  it("has each code of the device operations, once and with its status", () => {
    // No operation answers a wrong path or method, but device makers often receive these codes first.
    const wrongPath = ["path_not_found", "trailing_slash_missing", "method_not_allowed"] as const;
    const codes = new Set<ErrorCode>([
      ...wrongPath,
      ...routes.filter(({ tag }) => tag === "device").flatMap(errorCodesOf),
    ]);
    const expected = [...codes].map((code) => ({ code, status: String(ERRORS[code].status) }));
    const byCode = (a: { code?: string | undefined }, b: { code?: string | undefined }): number =>
      String(a.code).localeCompare(String(b.code));
    expect(rows.toSorted(byCode)).toEqual(expected.toSorted(byCode));
  });

  it("has a row for other codes, by the class of their status", () => {
    expect(deviceGuide).toMatch(/^\| other 4xx \| any \| .*do not repeat it unchanged/m);
    expect(deviceGuide).toMatch(/^\| other 5xx \| any \| the outcome is unknown/m);
  });

  it("the rows that ask to repeat a report: the same as in the rule for reports", () => {
    const [, named = ""] = /while the answer is (.+) or any 5xx, or there is none/.exec(deviceGuide) ?? [];
    const rule = (deviceGuide.match(/^\| \d{3} \| `.*$/gm) ?? [])
      .filter((row) => /repeat the (same )?request|wait as long as|try again/.test(row))
      .map((row) => row.slice(2, 5));
    const ofService = new Set(rows.map(({ status }) => status).filter((status) => Number(status) >= 500));
    expect([...(named.match(/\d{3}/g) ?? []), ...ofService]).toEqual([...new Set(rule)]);
  });

  it("has each reason of a blocked device", () => {
    expect(rows.map(({ code }) => code)).toEqual(expect.arrayContaining([...BLOCKED_REASONS]));
  });
});

describe("device guide: the numbers", () => {
  it.each([
    ["the heartbeat", `every ${KIT_LIMITS.heartbeatEveryMs / 1_000} seconds, also while the guest pays`],
    ["the silence", `silent for ${DEFAULT_MACHINE_SETTINGS.deviceSilenceMs / 1_000} seconds counts as offline`],
    [
      "the heartbeat's back-off",
      `A heartbeat that fails is repeated after ${KIT_LIMITS.heartbeatEveryMs / 1_000} seconds at the latest`,
    ],
    ["the longest wait", `1 second, then of 2, 4 and so on up to ${KIT_LIMITS.backoffMaxMs / 1_000} seconds`],
    ["the summary", `at most ${LIMITS.summaryBytes / 1_024} KiB of JSON and ${LIMITS.summaryDepth} levels`],
    ["the throttle", `${1_000 / CREDENTIAL_RATE.intervalMs} request a second, ${CREDENTIAL_RATE.burst} at once`],
  ])("%s: the same as in the program", (_name, sentence) => {
    expect(deviceGuide).toContain(sentence);
  });

  it("the telemetry of the kit: as large and as deep as the service accepts", () => {
    const { summaryMaxBytes, summaryMaxLevels } = KIT_LIMITS;
    expect([summaryMaxBytes, summaryMaxLevels]).toEqual([LIMITS.summaryBytes, LIMITS.summaryDepth]);
  });

  it("heartbeats and polls of the kit together: within the throttle of a credential", () => {
    const { heartbeatEveryMs, pollEveryMs, requestGapMs, burst } = KIT_LIMITS;
    expect({ intervalMs: requestGapMs, burst }).toEqual({
      intervalMs: CREDENTIAL_RATE.intervalMs,
      burst: CREDENTIAL_RATE.burst,
    });
    expect(1 / heartbeatEveryMs + 1 / pollEveryMs).toBeLessThanOrEqual(1 / requestGapMs);
  });
});
