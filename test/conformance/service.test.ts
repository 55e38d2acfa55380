/**
 * The suite against the whole system: it passes, reports this, and leaves nothing behind. Each test has another owner and
 * address.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { VERSION } from "../../services/runtime/version.ts";
import { send } from "../support/http.ts";
import { logIn, type Person } from "../support/people.ts";
import type { RunningProgram } from "../support/running-program.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";
import { type BreakingProxy, startBreakingProxy } from "./breaking-proxy.ts";
import { KEEPING_SERVICES } from "./broken-rules.ts";
import type { Passing } from "./broken-service.ts";
import { BROKEN_SERVICES } from "./broken-services.ts";
import { type Result, type Run, readRunOf, runSuite, seedSandbox, startRunOf, untilRunOf } from "./runs.ts";

let system: TestSystem;
let folder: TemporaryFolder;
let owner: Person;
let sql: Database;
const proxies: BreakingProxy[] = [];
beforeAll(async () => {
  system = await sharedSystem({ sandboxProvider: true });
  sql = openDatabase({ url: system.database.url, name: "conformance test", maxConnections: 1 });
  folder = temporaryFolder("conformance");
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
});
afterAll(async () => {
  await Promise.all(proxies.map((proxy) => proxy.stop()));
  await closeDatabase(sql);
  await system.stop();
  folder.remove();
});

/** A folder that does not exist, as on a machine that has never started the service. */
const dataDir = (): string => join(folder.path, "data");

const seed = (): Promise<string> => seedSandbox(owner, system.sandbox.filialId);
const readRun = (id: number): Promise<Run> => readRunOf(owner, id);
const startRun = (sandboxId: string, by: Person = owner): Promise<number> => startRunOf(by, sandboxId);
const untilRun = (id: number, isRight: (run: Run) => boolean): Promise<Run> => untilRunOf(owner, id, isRight);

/** The owner and the address with which a test runs the suite. */
interface Runner {
  /** Opens a session of the runner's owner. */
  readonly logIn: () => Promise<Person>;
  /** The service, as seen from the runner's address. */
  readonly baseUrl: string;
  readonly conformance: (...args: readonly string[]) => RunningProgram;
  readonly conformanceAt: (dataDir: string, ...args: readonly string[]) => RunningProgram;
  /** The open sessions of the runner's owner. */
  readonly openSessions: () => Promise<number[]>;
}

let runners = 0;
/**
 * Each test has an owner and an address, because it compares the sessions of its owner, and because throttles count by
 * address. The owner has the password hash of the sandbox's owner: a new hash for each test would take too long.
 */
async function openRunner(broken: Parameters<typeof startBreakingProxy>[1] = {}): Promise<Runner> {
  runners += 1;
  const nth = runners;
  const proxy = await startBreakingProxy(system.baseUrl, broken, `100.64.0.${nth}`);
  proxies.push(proxy);
  const details = { email: `owner-${nth}@conformance.example`, password: system.owner.password };
  const [user] = await sql<[{ user_id: number }]>`
    insert into users (organization_id, email, name, role, password_hash)
    select organization_id, ${details.email}, name, role, password_hash from users where user_id = ${owner.userId}
    returning user_id`;
  const conformanceAt: Runner["conformanceAt"] = (folderPath, ...args) =>
    runSuite({ baseUrl: proxy.baseUrl, dataDir: folderPath, by: details }, args);
  return {
    logIn: () => logIn(system.baseUrl, "backoffice", details),
    baseUrl: proxy.baseUrl,
    conformance: (...args) => conformanceAt(dataDir(), ...args),
    conformanceAt,
    openSessions: async () => {
      const rows = await sql<{ session_id: number }[]>`
        select session_id from sessions where user_id = ${user.user_id} and ended_at is null order by session_id`;
      return rows.map(({ session_id: id }) => id);
    },
  };
}

test("kill -9 of the process of a run by API: the suite cleans up, and another run can begin", async () => {
  const sandboxId = await seed();
  const runId = await startRun(sandboxId);
  await untilRun(runId, ({ passed }) => passed > 0);
  await system.processes.services.kill9();
  await system.processes.services.restart();
  // The time that it took no longer grows, and no later run is needed for that.
  const { ended_at: endedAt } = await untilRun(runId, ({ status }) => status === "interrupted");
  expect(endedAt).not.toBeNull();
  const nextId = await startRun(sandboxId);
  await untilRun(nextId, ({ passed }) => passed > 0);
  await system.processes.services.stop();
  await system.processes.services.restart();
  expect(await readRun(nextId)).toMatchObject({ status: "interrupted", left_behind: [] });
  // The parent of the suite is dead, so the suite cleans up as soon as the service runs again.
  const { station_id: stationId } = await owner.good<{ station_id: number }>("GET", `sandboxes/${sandboxId}/`);
  await vi.waitFor(
    async () => expect(await owner.good("GET", `stations/${stationId}/lease/`)).toMatchObject({ lease: null }),
    { timeout: 60_000, interval: 500 },
  );
  const { conformance_runs: runs } = await owner.good<{ conformance_runs: Run[] }>("GET", "conformance-runs/?limit=2");
  expect(runs.map(({ conformance_run_id: id }) => id)).toEqual([nextId, runId]);
});

/** This check is the last one and waits for half a minute. So a run that has reached it is still in progress. */
const GOES_ON = ["--only", "presence.silent_withdrawn"];

/** The files of runs that have begun at the sandbox and not ended. */
const begunRuns = (sandboxId: string) =>
  (existsSync(dataDir()) ? readdirSync(dataDir()) : [])
    .filter((name) => name.startsWith(`conformance-${sandboxId}-`))
    .map((name) => JSON.parse(readFileSync(join(dataDir(), name), "utf8")) as { readonly token: string });

interface Devices {
  readonly station_id: number;
  readonly display: { readonly device_id: number };
  readonly companion: { readonly device_id: number };
}
interface Switch {
  readonly subject: { readonly id: number };
}
const devicesOf = (sandboxId: string) => owner.good<Devices>("GET", `sandboxes/${sandboxId}/`);
const settingsOf = async (sandboxId: string) => {
  const { display, companion } = await devicesOf(sandboxId);
  return [await settingsOfDevice(display.device_id), await settingsOfDevice(companion.device_id)];
};
const settingsOfDevice = async (id: number) => {
  const { capabilities, handoff_target } = await owner.good("GET", `devices/${id}/`);
  return { capabilities, handoff_target };
};
/** The switches of this sandbox's station. Other runs have switches of other stations. */
const frozen = async (sandboxId: string): Promise<Switch[]> => {
  const { station_id: stationId } = await devicesOf(sandboxId);
  const { kill_switches: all } = await owner.good<{ kill_switches: Switch[] }>("GET", "kill-switches/");
  return all.filter(({ subject }) => subject.id === stationId);
};
const isFreeze = (text: string): boolean => /^POST \S+\/stations\/\d+\/freeze\//.test(text);
const isDeclared = (text: string): boolean => text.startsWith("PATCH ") && text.includes("capabilities");
/** Does a run that gets a signal as soon as the service has done the wanted change. */
async function endedBy(signal: NodeJS.Signals, sandboxId: string, only: string, isIt: (text: string) => boolean) {
  let isEnded = false;
  const { conformance } = await openRunner({
    breaks: ({ method, path, requestText }) => {
      if (isEnded || !isIt(`${method} ${path} ${requestText}`)) return;
      isEnded = true;
      program.process.kill(signal);
    },
  });
  const program = conformance("--sandbox", sandboxId, "--only", only);
  const code = await program.ended;
  expect(isEnded).toBe(true);
  return { conformance, code, output: program.output(), frozen: await frozen(sandboxId) };
}

/** The id of the process that runs the suite by API at a sandbox. */
function suiteOf(sandboxId: string): number {
  const words = `\0--sandbox\0${sandboxId}\0--json\0`;
  const pid = readdirSync("/proc").find(
    (name) => /^\d+$/.test(name) && existsSync(`/proc/${name}/cmdline`) && commandOf(name).includes(words),
  );
  return Number(pid);
}
const commandOf = (pid: string): string => readFileSync(`/proc/${pid}/cmdline`, "utf8");

describe("two runs at one sandbox", () => {
  const TAKEN = "Another run is active at sandbox";

  test("the second one, by command or by API: does not begin, exit code 2; the first one continues", async () => {
    let answers = 0;
    const {
      conformance,
      openSessions,
      logIn: openSession,
    } = await openRunner({
      // As behind a proxy that gives each answer an id.
      breaks: (_, answer) => void (answer.headers["x-ray"] = `ray-${answers++}`),
    });
    const person = await openSession();
    const before = await openSessions();
    const sandboxId = await seed();
    // All checks together take longer than the interval of lease renewals, on each machine.
    const first = conformance("--sandbox", sandboxId);
    await first.waitFor(/✓ enroll\.claims_code/);
    const second = conformance("--sandbox", sandboxId, "--only", "settle.cash");
    const runId = await startRun(sandboxId, person);
    const waiting = "The station is leased; waiting until the lease is renewed or ends.";
    expect([await second.ended, second.output()]).toEqual([
      2,
      `${waiting}\n${TAKEN} ${sandboxId}; wait for its end, or use another sandbox for this run.\n`,
    ]);
    const byApi = await untilRun(runId, ({ status }) => status !== "running");
    expect(byApi).toMatchObject({ status: "could_not_run", problem: expect.stringContaining(TAKEN) as string });
    await first.waitFor(/✓ settle\.cash/);
    first.process.kill("SIGINT");
    await first.ended;
    expect(first.output()).not.toContain("✗");
    expect(first.output()).toContain("✓ enroll.alike_refusals");
    expect(first.output()).toContain("Nothing is left behind.");
    expect(await openSessions()).toEqual(before);
    expect(begunRuns(sandboxId)).toEqual([]);
  });

  test("two that begin at the same moment: one passes, the other ends with exit code 2 and reports no failure", async () => {
    const sandboxId = await seed();
    // Each run continues when both have reset the sandbox. So neither of them has found the lease of the other.
    let resets = 0;
    const bothHaveReset = Promise.withResolvers<void>();
    const holds = async ({ path }: Passing): Promise<void> => {
      if (!path.endsWith(`/sandboxes/${sandboxId}/reset/`)) return;
      resets += 1;
      if (resets === 2) bothHaveReset.resolve();
      await bothHaveReset.promise;
    };
    const { conformance, openSessions } = await openRunner({ holds });
    const before = await openSessions();
    const runs = [1, 2].map(() => conformance("--sandbox", sandboxId, "--only", "report.accepted"));
    const codes = await Promise.all(runs.map(({ ended }) => ended));
    const outputs = runs.map((run) => run.output());
    expect(
      codes.toSorted((one, other) => Number(one) - Number(other)),
      outputs.join("\n---\n"),
    ).toEqual([0, 2]);
    expect(outputs[codes.indexOf(2)]).toContain(TAKEN);
    expect(outputs.join("")).not.toContain("✗");
    expect(outputs[codes.indexOf(0)]).toContain("Nothing is left behind.");
    expect(await openSessions()).toEqual(before);
  });
});

// From here on, the tests run at the same time, because most of them wait. Two runs by API are possible at once.
describe.concurrent("a run that is killed or ended", () => {
  test("kill -9 in the middle: the next run waits for the lease, and ends the session and collection that are left", async () => {
    const sandboxId = await seed();
    const { conformance, baseUrl } = await openRunner();
    const only = ["--only", "assignment.fetched", ...GOES_ON];
    const program = conformance("--sandbox", sandboxId, "--base-url", `${baseUrl}/`, ...only);
    await program.waitFor(/✓ assignment\.fetched/);
    program.process.kill("SIGKILL");
    await program.ended;
    const [left] = begunRuns(sandboxId);
    const next = conformance("--sandbox", sandboxId, "--only", "settle.cash");
    expect(await next.ended, next.output()).toBe(0);
    expect(next.output()).toContain("The station is leased; waiting until the lease is renewed or ends.");
    const { token = "" } = left ?? {};
    expect((await send(system.baseUrl, "GET", "/api/backoffice/v1/session/", { token })).status).toBe(401);
    expect(begunRuns(sandboxId)).toEqual([]);
  });

  test("kill -9 while the station is frozen: the next run passes, and the station is no longer frozen", async () => {
    const sandboxId = await seed();
    const { conformance, frozen: left } = await endedBy("SIGKILL", sandboxId, "kill_switch.station", isFreeze);
    expect(left).toHaveLength(1);
    const next = conformance("--sandbox", sandboxId, "--only", "display.qr");
    expect(await next.ended, next.output()).toBe(0);
    expect(await frozen(sandboxId)).toEqual([]);
  });

  test("kill -9 of a run by API while the devices have other settings: the next run by API restores them", async () => {
    const sandboxId = await seed();
    const before = await settingsOf(sandboxId);
    const { display } = await devicesOf(sandboxId);
    const runId = await startRun(sandboxId);
    // The settings of the companion change from its check to the end of the run; those of the display only during its check.
    await vi.waitFor(async () => expect(await settingsOfDevice(display.device_id)).not.toEqual(before[0]), {
      timeout: 90_000,
      interval: 5,
    });
    process.kill(suiteOf(sandboxId), "SIGKILL");
    await untilRun(runId, ({ status }) => status === "interrupted");
    expect(await settingsOf(sandboxId)).not.toEqual(before);
    const nextId = await startRun(sandboxId);
    await untilRun(nextId, ({ passed }) => passed > 0);
    await owner.good("POST", `conformance-runs/${nextId}/end/`);
    expect(await untilRun(nextId, ({ status }) => status !== "running")).toMatchObject({ left_behind: [] });
    expect(await settingsOf(sandboxId)).toEqual(before);
  });

  test("a run by API that its owner ends: cleans up, is not passed, and ends the session of an earlier killed run", async () => {
    const sandboxId = await seed();
    const { openSessions, logIn: openSession } = await openRunner();
    const person = await openSession();
    const before = await openSessions();
    await openSession();
    await sql`
      insert into conformance_runs (organization_id, sandbox_id, user_id, session_id, leased_until)
      select organization_id, ${sandboxId}, user_id, session_id, now() - interval '1 minute' from sessions
      where user_id = ${person.userId} order by session_id desc limit 1`;
    const runId = await startRun(sandboxId, person);
    await untilRun(runId, ({ passed }) => passed > 0);
    await person.good("POST", `conformance-runs/${runId}/end/`);
    const run = await untilRun(runId, ({ status }) => status !== "running");
    expect(run).toMatchObject({ status: "ended", left_behind: [], suite_version: VERSION });
    expect(await openSessions()).toEqual(before);
  });
});

describe.concurrent("what a run has changed in the sandbox", () => {
  test.each([
    ["the station is frozen", "kill_switch.station", isFreeze],
    ["a device has other settings", "display.qr_needs_capability", isDeclared],
  ] as const)("Ctrl-C while %s: the run is not passed, and the sandbox is as before", async (_, only, isIt) => {
    const sandboxId = await seed();
    const before = await settingsOf(sandboxId);
    const { code, output, frozen: left } = await endedBy("SIGINT", sandboxId, only, isIt);
    expect(code, output).toBe(1);
    expect(output).toContain("Nothing is left behind.");
    expect(left).toEqual([]);
    expect(await settingsOf(sandboxId)).toEqual(before);
  });

  test("a run during which changes take effect late: passes, and the launch reference is as before", async () => {
    const sandboxId = await seed();
    const before = await settingsOf(sandboxId);
    const late = new Set<string>();
    const { conformance } = await openRunner({
      // As while the relay is replaced: the first answer to each change of the owner is 202.
      breaks: ({ method, path, requestText }, answer) => {
        const change = `${method} ${path} ${requestText}`;
        if (method === "GET" || !path.startsWith("/api/backoffice/v1/") || answer.status > 204) return;
        if (answer.status === 201 || late.has(change)) return;
        late.add(change);
        Object.assign(answer, { status: 202, body: { ...answer.body, effective: false } });
      },
    });
    const program = conformance("--sandbox", sandboxId, "--only", "snapshot.handoff_target_opaque");
    expect(await program.ended, program.output()).toBe(0);
    expect(new Set([...late].map((change) => change.split(" ")[0]))).toEqual(new Set(["POST", "PATCH", "DELETE"]));
    expect(await settingsOf(sandboxId)).toEqual(before);
  });
});

test.concurrent("a run whose terminal is closed: leaves nothing behind, and is not passed", async () => {
  const { conformance } = await openRunner();
  const program = conformance("--sandbox", await seed(), "--only", "report.accepted", ...GOES_ON);
  await program.waitFor(/✓ report\.accepted/);
  program.process.kill("SIGHUP");
  expect(await program.ended, program.output()).toBe(1);
  expect(program.output()).toContain("Nothing is left behind.");
});

test.concurrent("a run with Ctrl-C while the owner logs in: exit code 2, and the session has ended", async () => {
  const sandboxId = await seed();
  const { conformance, openSessions } = await openRunner({
    breaks: ({ method, path }) => {
      if (method === "POST" && path === "/api/backoffice/v1/session/") program.process.kill("SIGINT");
    },
  });
  const before = await openSessions();
  const program = conformance("--sandbox", sandboxId);
  expect([await program.ended, program.output()]).toEqual([2, "Ended before it was done.\n"]);
  expect(await openSessions()).toEqual(before);
});

test.concurrent("a run that cannot begin: exit code 2, the session has ended, and an earlier result file is empty", async () => {
  const { conformance, openSessions } = await openRunner();
  const before = await openSessions();
  const file = join(folder.path, "earlier.xml");
  writeFileSync(file, '<testsuite name="conformance" tests="1" failures="0"/>');
  const cases = [
    [["--sandbox", "999999", "--junit", file], "Sandbox 999999 cannot be reset: 404"],
    [["--sandbox", "1", "--base-url", "http://127.0.0.1:9"], "does not answer"],
    [["--sandbox", "1", "--only", "no.such_check"], 'There is no check "no.such_check".'],
    [[], "Give --sandbox"],
  ] as const;
  for (const [args, sentence] of cases) {
    const program = conformance(...args);
    expect({ code: await program.ended, text: program.output() }).toEqual({
      code: 2,
      text: expect.stringContaining(sentence) as string,
    });
  }
  expect(readFileSync(file, "utf8")).toBe("");
  expect(await openSessions()).toEqual(before);
});

test.concurrent("a service that keeps something, although each check passes: exit code 3, and each report shows it", async () => {
  const keeps = KEEPING_SERVICES.find(({ leaves }) => leaves === "the station is leased");
  const { conformance } = await openRunner(keeps);
  const file = (end: string): string => join(folder.path, `kept.${end}`);
  const files = ["--junit", file("xml"), "--json-file", file("json"), "--html", file("html")];
  const args = ["--sandbox", await seed(), "--only", "settle.cash", ...files];
  const program = conformance(...args);
  expect(await program.ended, program.output()).toBe(3);
  expect(program.output()).toMatch(/^1 passed, 0 failed, 0 not run.+\nLeft behind: the station is leased: /m);
  expect(readFileSync(file("xml"), "utf8")).toMatch(/tests="2" failures="1" errors="0"/);
  const { left_behind: left } = JSON.parse(readFileSync(file("json"), "utf8")) as Result;
  expect(left).toEqual([expect.stringContaining("the station is leased")]);
  expect(readFileSync(file("html"), "utf8")).toContain("Left behind: the station is leased");
});

test.concurrent("a run that cannot store its session: prints why, and ends the session itself", async () => {
  const { conformanceAt, openSessions } = await openRunner();
  const before = await openSessions();
  const text = join(folder.path, "text");
  writeFileSync(text, "");
  const program = conformanceAt(text, "--sandbox", await seed(), "--only", "settle.cash");
  expect([await program.ended, program.output()]).toEqual([0, expect.stringContaining("cannot store its session")]);
  expect(await openSessions()).toEqual(before);
});

test.concurrent.each([
  ["503", 503],
  ["a redirect", 302],
])("a killed run's session that the service cannot end (%s): kept for the next run, exit code 2", async (_, status) => {
  const sandboxId = await seed();
  const token = "a-session-of-a-killed-run";
  const { conformance, baseUrl } = await openRunner({
    breaks: ({ method, headers }, answer) => {
      if (method === "DELETE" && headers["authorization"] === `Bearer ${token}`) Object.assign(answer, { status });
    },
  });
  mkdirSync(dataDir(), { recursive: true, mode: 0o700 });
  const file = join(dataDir(), `conformance-${sandboxId}-killed.json`);
  // There is no process with this id.
  writeFileSync(file, JSON.stringify({ baseUrl, pid: 2 ** 30, token }));
  const program = conformance("--sandbox", sandboxId, "--only", "settle.cash");
  const expected = expect.stringContaining(
    `The session of a run that was killed cannot be ended: ${status} `,
  ) as string;
  expect([await program.ended, program.output()]).toEqual([2, expected]);
  expect(existsSync(file)).toBe(true);
});

test.concurrent("a failed check: prints what was expected, the answer and a curl line; exit code 1", async () => {
  const service = BROKEN_SERVICES.find(({ name }) => name === "cash settles another amount");
  const { conformance } = await openRunner(service);
  const program = conformance("--sandbox", await seed(), "--only", "settle.cash");
  expect(await program.ended, program.output()).toBe(1);
  const text = program.output();
  expect(text).toMatch(
    /✗ settle\.cash {2}\d+ ms\n {4}`amount` of the transaction\n {4}expected: 25\.50\n {4}actual: {3}"25\.00"\n/,
  );
  expect(text).toMatch(/curl -i -X GET -H "Authorization: Bearer \$CASHIER_TOKEN" 'http:\S+\/orders\/\d+\/'/);
  expect(text).toContain("0 passed, 1 failed, 0 not run");
});
