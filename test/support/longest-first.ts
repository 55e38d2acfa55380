/**
 * The order of test files. The longest ones begin first, so that none of them runs alone at the end of the run. The files
 * that use the worker's system (`shared-system.ts`) follow one another, so that the system does not start again.
 */
import { existsSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const CHECKOUT = join(import.meta.dirname, "..", "..");

/**
 * The longest files, in an order by a measured run: files that compute much alternate with files that wait. The list is here
 * because a fresh checkout has no measured durations. The other files follow by size.
 */
const LONGEST = [
  "test/browser/back.test.ts",
  "test/gateway/readiness.test.ts",
  "test/chaos/kill.test.ts",
  "test/webhook-signer/stalls.test.ts",
  "test/clients/magic-behaviours.test.ts",
  "test/providers/magic-amounts.test.ts",
  "test/deploy/sandbox.test.ts",
  "test/stations/provider-saga.test.ts",
  "test/webhook-signer/processes.test.ts",
  "test/gateway/time-limits.test.ts",
  "test/deploy/full-disk.test.ts",
  "test/webhook-signer/faults.test.ts",
  "test/reconciliation/bounded-memory.test.ts",
  "test/webhook-signer/kills-at-steps.test.ts",
  "test/deploy/embedded-servers.test.ts",
  "test/audit/copy-cluster.test.ts",
  "test/gateway/people/bus-emptied.test.ts",
  "test/webhook-signer/endpoints.test.ts",
  "test/money/one-money.test.ts",
  "test/reconciliation/matching/runs.test.ts",
  "test/relay/failure.test.ts",
  "test/webhook-signer/redelivery.test.ts",
  "test/gateway/people/effect.test.ts",
  "test/webhook-signer/events-cluster.test.ts",
  "test/gateway/people/switches-lost.test.ts",
  "test/gateway/live.test.ts",
  "test/cluster/no-quorum.test.ts",
  "test/stations/saga.test.ts",
  "test/stations/unknown-append.test.ts",
  "test/deploy/production.test.ts",
  "test/webhook-signer/suspended.test.ts",
  "test/reconciliation/kills.test.ts",
  "test/webhook-signer/rotation.test.ts",
  "test/audit/copy-faults.test.ts",
  "test/stations/stalled-providers.test.ts",
  "test/providers/payments.test.ts",
  "test/conformance/service.test.ts",
  "test/clients/virtual-devices.test.ts",
  "test/browser/start.test.ts",
  "test/browser/display.test.ts",
  "test/browser/reconcile.test.ts",
  "test/conformance/devices/devices.test.ts",
  "test/browser/till.test.ts",
  "test/browser/reconcile-together.test.ts",
  "test/clients/reconciliation-commands.test.ts",
  "test/deploy/proxies.test.ts",
  "test/chaos/two-claims.test.ts",
  "test/clients/webhooks-command.test.ts",
  "test/browser/password.test.ts",
  "test/reconciliation/imports.test.ts",
  "test/browser/display-shell.test.ts",
  "test/conformance/certification.test.ts",
  "test/gateway/people/callback-flood.test.ts",
  "test/clients/sandbox-command.test.ts",
  "test/browser/day-long.test.ts",
  "test/gateway/people/webhooks.test.ts",
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const missing = LONGEST.filter((file) => !existsSync(join(CHECKOUT, file)));
    if (missing.length > 0)
      throw new Error(`The list of the longest tests names files that do not exist: ${missing.join(", ")}.`);
    // oxlint-disable-next-line unicorn/no-array-sort -- The sequencer's sort does not change its argument.
    const sorted = await super.sort(files);
    const shares = new Set(sorted.filter(({ moduleId }) => readFileSync(moduleId, "utf8").includes("sharedSystem(")));
    const placeOf = ({ moduleId }: TestSpecification, places: readonly string[]): number => {
      const place = places.indexOf(relative(CHECKOUT, moduleId));
      return place === -1 ? places.length : place;
    };
    const isIn = (name: string) => (file: TestSpecification) => file.project.name === name;
    const byPlace = (some: readonly TestSpecification[], places: readonly string[]) =>
      some.toSorted((a, b) => placeOf(a, places) - placeOf(b, places));
    const services = byPlace(sorted.filter(isIn("services")), LONGEST);
    const isLong = (file: TestSpecification): boolean => placeOf(file, LONGEST) < LONGEST.length;
    const timed = sorted.filter(isIn("timed"));
    // A worker continues only with files of its project, so the files of a project follow one another.
    return [
      ...services.filter((file) => !shares.has(file) && isLong(file)),
      ...services.filter((file) => shares.has(file)),
      ...sorted.filter(isIn("pure")),
      ...services.filter((file) => !shares.has(file) && !isLong(file)),
      ...byPlace(timed, timed[0]?.project.config.include ?? []),
      ...sorted.filter(isIn("alone")),
    ];
  }
}
