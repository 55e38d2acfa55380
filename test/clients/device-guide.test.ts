/** `docs/devices.md`: its shell lines run against the real system, and its numbers and codes are those of the program. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { clientLimits } from "../../clients/limits.ts";
import { errorCodesOf } from "../../gateway/contract/error-replies.ts";
import { ERRORS, type ErrorCode } from "../../gateway/contract/errors.ts";
import { deviceRoutes } from "../../gateway/device-routes.ts";
import { CREDENTIAL_RATE } from "../../gateway/throttle/limits.ts";
import { DEFAULT_MACHINE_SETTINGS } from "../../machines/settings.ts";
import { BLOCKED_REASONS } from "../../machines/standing.ts";
import { deviceGuide, guideBlock } from "../support/guide.ts";
import { logIn, type Person } from "../support/people.ts";
import { startSystem, type TestSystem } from "../support/system.ts";

const run = promisify(execFile);

/** Runs the lines of one block; each prints one JSON body. */
async function runBlock<T>(mark: string, variables: Record<string, string>): Promise<T> {
  const lines = guideBlock("sh", mark, deviceGuide).trim().split("\n");
  const line = lines.find((each) => each.includes(mark)) ?? "";
  const { stdout } = await run("sh", ["-euc", line], { env: { ...process.env, ...variables } });
  return JSON.parse(stdout) as T;
}

describe("device guide: the shell lines", () => {
  let system: TestSystem;
  let cashier: Person;
  let variables: Record<string, string>;
  let intentPath: string;

  beforeAll(async () => {
    system = await startSystem();
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
    // The heartbeat reaches the station a moment after the answer.
    const intent = await vi.waitUntil(async () => {
      const answer = await cashier.call<{ intent_id: number }>("POST", `${root}/intents/`, { body });
      return answer.status === 201 ? answer.body : undefined;
    });
    intentPath = `${root}/intents/${intent.intent_id}/`;
    variables["INTENT_ID"] = String(intent.intent_id);
  }, 60_000);
  afterAll(() => system.stop());

  it("fetch the assignment, report it, and read the report back with the same key", async () => {
    const fetched = await runBlock<{ assignment: object }>('devices/assignment/"', variables);
    expect(fetched.assignment).toMatchObject({ amount: "25.00", status: "presented" });
    const first = await runBlock<object>("/report/", variables);
    expect(first).toMatchObject({ report: { outcome: "reported_success" }, assignment: { status: "processing" } });
    expect(await runBlock<object>("/report/", variables)).toEqual(first);
    expect(await cashier.good("GET", intentPath)).toMatchObject({ report_count: 1, status: "processing" });
  });
});

describe("device guide: the table of answers", () => {
  const rows = deviceGuide
    .slice(deviceGuide.indexOf("## What to do on each answer"))
    .split("\n")
    .filter((line) => /^\| \d{3} \| `/.test(line))
    .map((line) => line.split("|").map((cell) => cell.trim()))
    .flatMap(([, status, codes = ""]) => [...codes.matchAll(/`(\w+)`/g)].map((match) => ({ code: match[1], status })));

  it("names each code that a device operation answers with, once and with its status", () => {
    // A path that does not exist is no operation's answer, and a device maker meets it first.
    const codes = new Set<ErrorCode>(["path_not_found", ...deviceRoutes.flatMap(errorCodesOf)]);
    const expected = [...codes].map((code) => ({ code, status: String(ERRORS[code].status) }));
    const byCode = (a: { code?: string | undefined }, b: { code?: string | undefined }): number =>
      String(a.code).localeCompare(String(b.code));
    expect(rows.toSorted(byCode)).toEqual(expected.toSorted(byCode));
  });

  it("names every reason of a blocked device", () => {
    expect(rows.map(({ code }) => code)).toEqual(expect.arrayContaining([...BLOCKED_REASONS]));
  });
});

describe("device guide: the numbers", () => {
  it.each([
    ["the heartbeat", `every ${clientLimits.heartbeatEveryMs / 1_000} seconds, also while the guest pays`],
    ["the silence", `silent for ${DEFAULT_MACHINE_SETTINGS.deviceSilenceMs / 1_000} seconds counts as offline`],
    ["the throttle", `${1_000 / CREDENTIAL_RATE.intervalMs} request a second, ${CREDENTIAL_RATE.burst} at once`],
  ])("%s is the program's", (_name, sentence) => {
    expect(deviceGuide).toContain(sentence);
  });
});
