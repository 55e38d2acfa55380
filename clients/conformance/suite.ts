/** Runs the checks in their order, and then ends everything that they created. */
import { setTimeout as delay } from "node:timers/promises";
import { clientLimits } from "../limits.ts";
import type { Check, CheckResult } from "./check.ts";
import { CHECKS } from "./checks.ts";
import { hasStatus, isSame, Mismatch, objectOf } from "./expect.ts";
import { curlLine, NoAnswer, newWire, type Party, type Wire } from "./http.ts";
import { CannotRun, type LogIn, type OpenSession, ownerOf, resetSandbox, World } from "./world.ts";

export interface RunOptions {
  readonly baseUrl: string;
  readonly sandboxId: number;
  readonly owner: LogIn | OpenSession;
  readonly signal: AbortSignal;
  /** Only these checks, and the checks that they depend on. All checks when undefined. */
  readonly only?: readonly string[];
  /** Called when the owner has a session, so that the next run can clean up after a run that was killed. */
  readonly onSession?: (token: string) => void;
  readonly onResult?: (result: CheckResult) => void;
}

export interface RunResult {
  readonly results: readonly CheckResult[];
  /** What the clean-up could not end. Empty when all is well. */
  readonly leftBehind: readonly string[];
  readonly durationMs: number;
}

/** Throws `CannotRun` or `NoAnswer` where the suite could not begin. */
export async function runSuite(options: RunOptions): Promise<RunResult> {
  const { baseUrl, owner: details, sandboxId, signal, onResult } = options;
  const startedAtMs = performance.now();
  const wire = newWire(baseUrl, signal);
  const owner = await ownerOf(wire, details);
  if (!("token" in details)) options.onSession?.(owner.token);
  const { sandbox, currency } = await resetSandbox(owner, sandboxId);
  const world = new World(wire, owner, sandbox, currency);
  const results: CheckResult[] = [];
  let leftBehind: readonly string[] = [];
  try {
    await world.logInCashier();
    await runChecks(world, chosen(CHECKS, options.only), { results, onResult });
  } finally {
    leftBehind = await cleanUp(world);
  }
  return { results, leftBehind, durationMs: performance.now() - startedAtMs };
}

/** Runs the checks one after the other, and adds what came of each to the results. */
export async function runChecks<TWorld extends { readonly wire: Wire }>(
  world: TWorld,
  checks: readonly Check<TWorld>[],
  { results, onResult }: { readonly results: CheckResult[]; readonly onResult: RunOptions["onResult"] },
): Promise<void> {
  for (const check of checks) {
    const result = await runCheck(world, check, results);
    results.push(result);
    onResult?.(result);
  }
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
    // The answer does not have the shape that the check reads.
    if (error instanceof TypeError) {
      const expected = "the shape that the contract has";
      return result({ outcome: "failed", failure: { what: "answer", expected, actual: error.message, curl } });
    }
    throw error;
  }
}

/** Ends all that the run has made, and reads afterwards that it has ended. Runs also after SIGINT. */
export async function cleanUp(world: World): Promise<string[]> {
  const wire: Wire = { ...world.wire, signal: AbortSignal.timeout(clientLimits.conformanceCleanUpMs) };
  const left: string[] = [];
  const deadlineMs = performance.now() + clientLimits.conformanceCleanUpMs;
  const must = async (what: string, work: () => Promise<void>): Promise<void> => {
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
  const owner = world.owner.over(wire);
  const { sandboxId, stationId } = world.sandbox;
  await must("the sandbox is not reset", async () => void (await resetSandbox(owner, sandboxId)));
  await must("the station is leased", async () => {
    const lease = objectOf(hasStatus(await owner.send("GET", `stations/${stationId}/lease/`), 200));
    isSame("lease of the station", lease["lease"], null);
  });
  await must("a collection is open", async () => {
    const { active_intents: intents } = objectOf(hasStatus(await owner.send("GET", "active-intents/"), 200)) as {
      active_intents: readonly { readonly station_id: number }[];
    };
    isSame(
      "open collections of the sandbox",
      intents.filter((each) => each.station_id === stationId),
      [],
    );
  });
  await must("an order is open", async () => {
    const answer = await owner.send("GET", `orders/?station_id=${stationId}&status=open`);
    isSame("open orders of the sandbox", objectOf(hasStatus(answer, 200))["orders"], []);
  });
  for (const device of world.credentials)
    await must("a credential is valid", () => refused(device.over(wire).unpaced(), "me/"));
  await must("the cashier's session is open", async () => {
    if (world.hasCashier) await refused(world.cashier.over(wire), "stations/");
  });
  await must("the owner's session is open", async () => {
    await owner.send("DELETE", "session/");
    await refused(owner, "session/");
  });
  return left;
}

async function refused(party: Party, path: string): Promise<void> {
  hasStatus(await party.send("GET", path), 401);
}
