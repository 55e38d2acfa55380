/** Runs the checks in order, and then ends everything that the run has begun. */
import { setTimeout as delay } from "node:timers/promises";
import { clientLimits } from "../limits.ts";
import type { Check, CheckResult } from "./check.ts";
import { CHECKS } from "./checks.ts";
import { expectSame, expectStatus, Mismatch, objectOf } from "./expect.ts";
import { curlLine, NoAnswer, newWire, type Party, type Wire } from "./http.ts";
import { keepStation, Taken, waitUntilFree } from "./one-run.ts";
import {
  CannotRun,
  type FreshSandbox,
  LeftBehind,
  type LogIn,
  type OpenSession,
  ownerOf,
  resetSandbox,
  untilKnown,
  World,
} from "./world.ts";

export interface RunOptions {
  readonly baseUrl: string;
  readonly sandboxId: number;
  readonly owner: LogIn | OpenSession;
  readonly signal: AbortSignal;
  /** Only these checks, and the checks that they depend on. All checks when undefined. */
  readonly only?: readonly string[];
  /** Called with the owner's session. If this run is killed, a later run ends the session. */
  readonly onLoggedIn?: (token: string) => void;
  /** Called when this run has the sandbox: ends the sessions of killed runs. */
  readonly endLeft?: () => Promise<void>;
  /** Called when another run, possibly a killed one, still has the lease of the sandbox. */
  readonly onWait?: () => void;
  readonly onResult?: (result: CheckResult) => void;
}

export interface RunResult {
  readonly results: readonly CheckResult[];
  /** Things that the clean-up could not end; empty after a complete clean-up. */
  readonly leftBehind: readonly string[];
  readonly durationMs: number;
}

/** Throws `CannotRun` or `NoAnswer` when the suite cannot begin. */
export async function runSuite(options: RunOptions): Promise<RunResult> {
  const startedAtMs = performance.now();
  const checks = chosen(CHECKS, options.only);
  const { done: results, leftBehind } = await atSandbox(options, (world) => runChecks(world, checks, options.onResult));
  return { results, leftBehind, durationMs: performance.now() - startedAtMs };
}

/**
 * Works at the sandbox as its owner and its cashier. Afterwards it ends everything that it began, also when the work fails.
 * Throws `Taken` when another run is active there.
 */
export async function atSandbox<T>(
  options: RunOptions,
  work: (world: World) => Promise<T>,
): Promise<{ readonly done: T; readonly leftBehind: readonly string[] }> {
  const { baseUrl, sandboxId, owner: details, signal, onWait } = options;
  const wire = newWire(baseUrl, signal);
  const owner = await ownerOf(wire, details);
  const begun: Begun = { wire, owner, world: undefined, settings: undefined };
  let done: T;
  try {
    // The program that has opened the session for the run ends it.
    if (!("token" in details)) options.onLoggedIn?.(owner.token);
    await untilKnown(owner, "session/", signal);
    await waitUntilFree(owner, sandboxId, { signal, onWait });
    const { sandbox, currency } = await resetSandbox(owner, sandboxId, { keepsSettings: true });
    begun.world = new World(wire, owner, sandbox, currency);
    await begun.world.logInCashier();
    const keeping = keepStation(begun.world);
    try {
      await options.endLeft?.();
      begun.settings = await readSettings(owner, sandbox);
      done = await work(begun.world);
    } finally {
      await keeping.stop();
    }
  } catch (error) {
    const leftBehind = await cleanUp(begun);
    if (leftBehind === "taken") throw new Taken(sandboxId);
    throw leftBehind.length === 0 ? error : new LeftBehind(error, leftBehind);
  }
  const leftBehind = await cleanUp(begun);
  if (leftBehind === "taken") throw new Taken(sandboxId);
  return { done, leftBehind };
}

/** What a run has begun and must end. */
interface Begun {
  readonly wire: Wire;
  readonly owner: Party;
  world: World | undefined;
  /** The settings of the devices before the run; undefined until the run has read them. */
  settings: readonly object[] | undefined;
}

/** Reads the device settings that checks change. */
async function readSettings(owner: Party, { displayId, companionId }: FreshSandbox): Promise<readonly object[]> {
  const read = async (deviceId: number): Promise<object> => {
    const { capabilities, handoff_target } = objectOf(
      expectStatus(await owner.send("GET", `devices/${deviceId}/`), 200),
    );
    return { device_id: deviceId, capabilities, handoff_target };
  };
  return [await read(displayId), await read(companionId)];
}

interface RunWorld {
  readonly wire: Wire;
  /** Whether another run has taken the sandbox meanwhile. */
  isTaken(): Promise<boolean>;
}

/** Runs the checks one after the other. Throws `CannotRun` when another run has taken the sandbox. */
export async function runChecks<TWorld extends RunWorld>(
  world: TWorld,
  checks: readonly Check<TWorld>[],
  onResult: RunOptions["onResult"],
): Promise<readonly CheckResult[]> {
  const results: CheckResult[] = [];
  for (const check of checks) {
    const result = await runCheck(world, check, results);
    // The changes of another run may have caused the failure.
    if (result.outcome === "failed" && (await world.isTaken().catch(() => false)))
      throw new CannotRun("The sandbox was taken.");
    results.push(result);
    onResult?.(result);
  }
  return results;
}

/** The named checks, each after the checks that it depends on. */
export function chosen<TCheck extends Pick<Check, "id" | "after">>(
  checks: readonly TCheck[],
  only: readonly string[] | undefined,
): readonly TCheck[] {
  if (only === undefined) return checks;
  const wanted = new Set<string>();
  const add = (id: string): void => {
    const check = checks.find((each) => each.id === id);
    if (check === undefined) throw new CannotRun(`There is no check "${id}".`);
    for (const before of check.after ?? []) add(before);
    wanted.add(id);
  };
  for (const id of only) add(id);
  return checks.filter(({ id }) => wanted.has(id));
}

async function runCheck<TWorld extends { readonly wire: Wire }>(
  world: TWorld,
  check: Check<TWorld>,
  earlier: readonly CheckResult[],
): Promise<CheckResult> {
  const { id, capability, quotes } = check;
  const startedAtMs = performance.now();
  const result = (more: Pick<CheckResult, "outcome" | "failure" | "because">): CheckResult => ({
    id,
    capability,
    quotes,
    durationMs: Math.round(performance.now() - startedAtMs),
    ...more,
  });
  if (world.wire.signal.aborted) return result({ outcome: "not_run", because: "the run was ended." });
  const missing = check.after?.find((before) =>
    earlier.every((each) => each.id !== before || each.outcome !== "passed"),
  );
  if (missing !== undefined) return result({ outcome: "not_run", because: `${missing} did not pass.` });
  try {
    await check.run(world);
    return result({ outcome: "passed" });
  } catch (error) {
    if (world.wire.signal.aborted) return result({ outcome: "not_run", because: "the run was ended." });
    if (error instanceof CannotRun) return result({ outcome: "not_run", because: error.message });
    const { last } = world.wire;
    const curl = last === undefined ? "" : curlLine(last);
    if (error instanceof Mismatch) {
      const { message: what, expected, actual } = error;
      return result({ outcome: "failed", failure: { what, expected, actual, curl } });
    }
    if (error instanceof NoAnswer)
      return result({
        outcome: "failed",
        failure: { what: "answer", expected: "an answer", actual: error.message, curl },
      });
    // The answer does not have the shape that the check expects.
    if (error instanceof TypeError) {
      const expected = "the shape that the contract has";
      return result({ outcome: "failed", failure: { what: "answer", expected, actual: error.message, curl } });
    }
    throw error;
  }
}

/**
 * Ends everything that the run has made, and then verifies that it has ended. When another run has taken the sandbox, it ends
 * only the session. It also runs after SIGINT, and when there is no world yet.
 */
async function cleanUp({ wire: wireOfRun, owner: ownerOfRun, world, settings }: Begun): Promise<string[] | "taken"> {
  const wire: Wire = { ...wireOfRun, signal: AbortSignal.timeout(clientLimits.conformanceCleanUpMs) };
  const left: string[] = [];
  const deadlineMs = performance.now() + clientLimits.conformanceCleanUpMs;
  const must: Must = async (what, work) => {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        const { answer } = wire.last ?? {};
        // A service that is being restarted soon answers again.
        const isPassing = answer === undefined || answer.status === 503;
        const isLast = performance.now() + clientLimits.backoffFirstMs > deadlineMs;
        if (isPassing && !isLast) {
          await delay(clientLimits.backoffFirstMs);
          continue;
        }
        left.push(`${what}: ${error instanceof Mismatch ? `${error.message} is ${error.actual}` : String(error)}`);
        return;
      }
    }
  };
  const owner = ownerOfRun.over(wire);
  let isTaken = false;
  if (world !== undefined) {
    await must("the sandbox cannot be read", async () => void (isTaken = await world.isTaken(owner)));
    if (!isTaken) await endWorld({ wire, owner, world, settings }, must);
  }
  await must("the owner's session is open", async () => {
    await owner.change("DELETE", "session/");
    await refused(owner, "session/");
  });
  return isTaken && left.length === 0 ? "taken" : left;
}

interface Frozen {
  readonly subject: { readonly kind: string; readonly id: number };
}

type Must = (what: string, work: () => Promise<void>) => Promise<void>;

async function endWorld(
  { wire, owner, world, settings }: Begun & { readonly world: World },
  must: Must,
): Promise<void> {
  const { sandboxId, stationId } = world.sandbox;
  await must("the sandbox is not reset", async () => {
    await resetSandbox(owner, sandboxId, { keepsSettings: false });
  });
  await must("a device has other settings than before", async () => {
    if (settings !== undefined)
      expectSame("settings of the devices", await readSettings(owner, world.sandbox), settings);
  });
  await must("the station is leased", async () => {
    const lease = objectOf(expectStatus(await owner.send("GET", `stations/${stationId}/lease/`), 200));
    expectSame("lease of the station", lease["lease"], null);
  });
  await must("a collection is open", async () => {
    const { active_intents: intents } = objectOf(expectStatus(await owner.send("GET", "active-intents/"), 200)) as {
      active_intents: readonly { readonly station_id: number }[];
    };
    expectSame(
      "open collections of the sandbox",
      intents.filter((each) => each.station_id === stationId),
      [],
    );
  });
  await must("something is frozen", async () => {
    const answer = expectStatus(await owner.send("GET", "kill-switches/?limit=500"), 200);
    const { kill_switches: switches } = objectOf(answer) as { kill_switches: readonly Frozen[] };
    const { displayId, companionId } = world.sandbox;
    const isHere = ({ subject: { kind, id } }: Frozen): boolean =>
      kind === "station" ? id === stationId : kind === "device" && [displayId, companionId].includes(id);
    expectSame("freezes of the sandbox", switches.filter(isHere), []);
  });
  await must("an order is open", async () => {
    const answer = await owner.send("GET", `orders/?station_id=${stationId}&status=open`);
    expectSame("open orders of the sandbox", objectOf(expectStatus(answer, 200))["orders"], []);
  });
  for (const device of world.credentials)
    await must("a credential is valid", () => refused(device.over(wire).unpaced(), "me/"));
  await must("the cashier's session is open", async () => {
    if (world.hasCashier) await refused(world.cashier.over(wire), "stations/");
  });
}

async function refused(party: Party, path: string): Promise<void> {
  expectStatus(await party.send("GET", path), 401);
}
