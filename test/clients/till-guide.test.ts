/** `docs/till.md`: its shell lines run against the real system. Its table has every error of the cashiers' API. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { errorCodesOf } from "../../gateway/http/documents/error-replies.ts";
import { ERRORS, type ErrorCode } from "../../gateway/http/errors.ts";
import { LIMITS } from "../../gateway/limits.ts";
import { CLOSE_CODES } from "../../gateway/live/live-socket.ts";
import { routes } from "../../gateway/routes.ts";
import { DEFAULT_MACHINE_SETTINGS } from "../../machines/settings.ts";
import { runGuideLine, tillGuide } from "../support/guide.ts";
import { send } from "../support/http.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";

describe("till guide: the shell lines", () => {
  let system: TestSystem;
  let variables: Record<string, string>;
  let companion: string;
  const run = <T>(mark: string): Promise<T> => runGuideLine<T>(tillGuide, mark, variables);

  beforeAll(async () => {
    system = await sharedSystem({ claims: true });
    const [station] = system.sandbox.stations;
    variables = {
      BASE_URL: system.baseUrl,
      CASHIER_EMAIL: system.cashier.email,
      CASHIER_PASSWORD: system.cashier.password,
      STATION_ID: String(station?.stationId),
      ORDER_KEY: "order-1",
      INTENT_KEY: "intent-1",
      CONFIRMED_KEY: "intent-2",
      ATTEST_KEY: "attest-1",
      REFERENCE: "SLIP-1",
    };
    const code = station?.devices.find(({ kind }) => kind === "smart_pos_companion")?.enrollmentCode ?? "";
    const enrolled = await send<{ credential: string }>(system.baseUrl, "POST", "/api/payments/v1/devices/enroll/", {
      json: { code },
    });
    companion = enrolled.body.credential;
    await send(system.baseUrl, "POST", "/api/payments/v1/devices/heartbeat/", { token: companion });
  });
  afterAll(() => system.stop());

  it("a collection that was fetched and cancelled: the next one is confirmed, attested and paid", async () => {
    variables["TOKEN"] = (await run<{ token: string }>("session/\" -H 'Content")).token;
    expect(await run<object>('/stations/"')).toMatchObject({ stations: expect.anything() });
    expect(await run<object>('-X POST "$BASE_URL/api/cashier/v1/stations/$STATION_ID/lease/')).toMatchObject({
      lease: { mine: true },
    });
    expect(await run<object>("-X PUT")).toMatchObject({ lease: { mine: true } });
    variables["ORDER_ID"] = String((await run<{ order_id: number }>("$ORDER_KEY")).order_id);
    await vi.waitFor(async () => {
      const offered = await run<{ routes: object[] }>("/routes/");
      expect(offered.routes).toContainEqual(expect.objectContaining({ route: "smart_pos", offered: true }));
    });
    variables["ROUTE"] = "smart_pos";
    variables["INTENT_ID"] = String((await run<{ intent_id: number }>("$INTENT_KEY")).intent_id);
    await send(system.baseUrl, "GET", "/api/payments/v1/devices/assignment/", { token: companion });
    expect(await run<object>('$INTENT_ID/" -H')).toMatchObject({ status: "presented", cancel_offered: true });
    expect(await run<object>("/live/")).toMatchObject({ type: "state", active_intent: { status: "presented" } });
    expect(await run<object>("/cancel/")).toMatchObject({ money_may_have_moved: "handoff_presented" });

    variables["ROUTE"] = "cash";
    variables["INTENT_KEY"] = "intent-1-again";
    const asked = await run<{ reason_number: number }>("$INTENT_KEY");
    expect(asked).toMatchObject({
      code: "money_may_have_moved",
      reason: "handoff_presented",
      earlier_intent_id: Number(variables["INTENT_ID"]),
    });
    variables["REASON_NUMBER"] = String(asked.reason_number);
    const confirmed = await run<{ intent_id: number; settle_offered: boolean }>("$CONFIRMED_KEY");
    expect(confirmed.settle_offered).toBe(true);
    variables["INTENT_ID"] = String(confirmed.intent_id);
    expect(await run<object>("/attest/")).toMatchObject({ status: "succeeded" });
    expect(await run<object>("/orders/$ORDER_ID/")).toMatchObject({ status: "paid" });
    expect(await run<object>('-X DELETE "$BASE_URL/api/cashier/v1/stations/')).toMatchObject({ lease: null });
    expect(await run<undefined>('-X DELETE "$BASE_URL/api/cashier/v1/session/')).toBeUndefined();
  });
});

describe("till guide: the table of errors", () => {
  const rows = [...tillGuide.matchAll(/^\| (\d{3}) \| (`.*?`) \|/gm)].flatMap(([, status, codes = ""]) =>
    [...codes.matchAll(/`(\w+)`/g)].map((match) => ({ code: match[1] ?? "", status: status ?? "" })),
  );

  it("has each code of the cashiers' API, once and with its status", () => {
    const wrongPath = ["path_not_found", "trailing_slash_missing", "method_not_allowed"] as const;
    const ofApi = routes.filter(({ path }) => path.startsWith("/api/cashier/")).flatMap(errorCodesOf);
    const expected = [...new Set<ErrorCode>([...wrongPath, ...ofApi])].map((code) => ({
      code,
      status: String(ERRORS[code].status),
    }));
    const byCode = (a: { code: string }, b: { code: string }): number => a.code.localeCompare(b.code);
    expect(rows.toSorted(byCode)).toEqual(expected.toSorted(byCode));
  });
});

describe("till guide: the numbers", () => {
  it("the lease's lifetime and the live socket's close codes: the same as in the program", () => {
    expect(tillGuide).toContain(`it lasts ${DEFAULT_MACHINE_SETTINGS.leaseLifetimeMs / 60_000} minutes unless`);
    expect(tillGuide).toContain(`${LIMITS.unboundLeaseMs / 60_000} minutes at most while the registry`);
    for (const code of Object.values(CLOSE_CODES)) expect(tillGuide).toContain(`with ${code} when`);
  });
});
