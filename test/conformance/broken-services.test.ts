/**
 * The suite against services that are broken in one way each. The check of the broken sentence fails, and the checks that it
 * depends on pass. A test run takes some of them by a seed; with CONFORMANCE_BROKEN=all, as in `npm run soak`, it takes all.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CHECKS } from "../../clients/conformance/checks.ts";
import { chosen, runSuite } from "../../clients/conformance/suite.ts";
import { logIn, type Person } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { startBreakingProxy } from "./breaking-proxy.ts";
import { KEEPING_SERVICES } from "./broken-rules.ts";
import type { BrokenService } from "./broken-service.ts";
import { BROKEN_SERVICES } from "./broken-services.ts";

/** The checks that no service fails alone. */
const NEVER_ALONE = [
  // They begin what a later check is about.
  "enroll.code_expires",
  "expiry.begins",
  // The check before them needs the right value of the field.
  "snapshot.device_id",
  "display.state",
];
/** How many of each kind a test run takes. Each day, it takes others. */
const SHARE = 5;
const KEEPING_SHARE = 1;
const SEED = Number(process.env.CONFORMANCE_SEED ?? Math.floor(Date.now() / 86_400_000));
const pick = <T>(all: readonly T[], share: number): readonly T[] => {
  const parts = Math.ceil(all.length / share);
  return process.env.CONFORMANCE_BROKEN === "all" ? all : all.filter((_, index) => index % parts === SEED % parts);
};
const picked: readonly BrokenService[] = pick(BROKEN_SERVICES, SHARE);

let system: TestSystem;
let owner: Person;
beforeAll(async () => {
  system = await sharedSystem({ sandboxProvider: true });
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
});
afterAll(() => system.stop());

async function run(service: Pick<BrokenService, "breaks">, nth: number, only: readonly string[]) {
  const body = { filial_id: system.sandbox.filialId, name: `Broken ${nth}`, currency: "EUR" };
  const { sandbox_id: sandboxId } = await owner.good<{ sandbox_id: number }>("POST", "sandboxes/", { body });
  const proxy = await startBreakingProxy(system.baseUrl, service, `198.51.${nth >> 8}.${nth & 255}`);
  try {
    const signal = AbortSignal.timeout(100_000);
    return await runSuite({ baseUrl: proxy.baseUrl, sandboxId, owner: system.owner, signal, only });
  } finally {
    await proxy.stop();
    await owner.good("DELETE", `sandboxes/${sandboxId}/`);
  }
}

describe("the suite against a broken service", () => {
  it("the broken services: at least sixty, each with a unique name and a check that exists", () => {
    expect(BROKEN_SERVICES.length).toBeGreaterThanOrEqual(60);
    expect(new Set(BROKEN_SERVICES.map(({ name }) => name)).size).toBe(BROKEN_SERVICES.length);
    for (const { caughtBy } of BROKEN_SERVICES) expect(chosen(CHECKS, [caughtBy]).at(-1)?.id ?? caughtBy).toBeTruthy();
  });

  it("each check that can fail alone: a broken service that it must notice", () => {
    const noticing = new Set([...BROKEN_SERVICES.map(({ caughtBy }) => caughtBy), ...NEVER_ALONE]);
    expect(CHECKS.map(({ id }) => id).filter((id) => !noticing.has(id))).toEqual([]);
  });

  it.concurrent.each(picked.map((service, index) => [service.name, service, index] as const))(
    "%s: only the check for it fails",
    async (_, service, nth) => {
      const { results } = await run(service, nth + 1, [service.caughtBy]);
      const failed = results.filter(({ outcome }) => outcome !== "passed");
      expect(failed.map(({ id, outcome }) => `${id} ${outcome}`)).toEqual([`${service.caughtBy} failed`]);
    },
  );
});

it.concurrent.each(
  pick(KEEPING_SERVICES, KEEPING_SHARE).map((service, index) => [service.name, service, index] as const),
)("a service that keeps something: %s", async (_, service, index) => {
  const { results, leftBehind } = await run(service, 900 + index, ["enroll.claims_code", "settle.cash"]);
  expect(results.map(({ outcome }) => outcome)).toEqual(["passed", "passed"]);
  expect(new Set(leftBehind.map((left) => left.split(":")[0]))).toEqual(new Set([service.leaves]));
});
