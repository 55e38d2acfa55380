import { defineConfig } from "vitest/config";
import { LongestFirst } from "./test/support/longest-first.ts";
import { workers } from "./test/support/workers.ts";

const PURE = [
  "test/machines/**/*.test.ts",
  "test/tidy.test.ts",
  "test/deploy/lock-file.test.ts",
  "test/cluster/judge.test.ts",
  "test/cluster/side-judges.test.ts",
  "test/mutants/mutants.test.ts",
];
/**
 * What holds milliseconds against a bound: run when the other files have ended, which keep both cores busy. They wait much:
 * each of them takes a fifth of a core on average, so several run at once, in this order.
 */
const TIMED = [
  "test/cluster/trial.test.ts",
  "test/cluster/majority.test.ts",
  "test/cluster/electing-buckets.test.ts",
  "test/cluster/server-links.test.ts",
  "test/providers/isolation-by-provider.test.ts",
  "test/providers/isolation.test.ts",
  "test/relay/take-over.test.ts",
  "test/conformance/two-runs.test.ts",
  "test/webhook-signer/slots-of-owners.test.ts",
  "test/chaos/frozen-feed.test.ts",
  "test/stations/ownership.test.ts",
  "test/stations/slow-acknowledgements.test.ts",
  "test/chaos/service-faults.test.ts",
  "test/gateway/people/kill-switches.test.ts",
  "test/gateway/missing-stations.test.ts",
  "test/gateway/device-access.test.ts",
  "test/clients/pace.test.ts",
  "test/gateway/live-promptness.test.ts",
  "test/bus/redial.test.ts",
  "test/bus/station-client.test.ts",
  "test/db/dialing.test.ts",
  "test/db/reach-database.test.ts",
];
/** Three clusters of NATS at once, which are first in the list, leave both cores time. */
const TIMED_AT_ONCE = 3;
/** What holds a throughput against a bound, or computes much while it is timed: alone on the machine, at the end. */
const ALONE = [
  "test/gateway/people/sign-in-flood.test.ts",
  "test/registry/login-throttle.test.ts",
  "test/reconciliation/stop.test.ts",
  "test/deploy/second-start.test.ts",
  "test/deploy/hanging-servers.test.ts",
  "test/webhook-signer/isolation.test.ts",
  "test/browser/page-speed.test.ts",
];
const SERVERS = {
  globalSetup: ["test/support/global-servers.ts"],
  // Against a test that hangs, also beside other work on the machine. What must be done in time, a test measures itself.
  testTimeout: 120_000,
  hookTimeout: 120_000,
  expect: { poll: { timeout: 20_000 } },
};

export default defineConfig({
  test: {
    // No retries: a test that fails now and then is a defect in the test or in the product.
    retry: 0,
    maxWorkers: workers(),
    pool: "forks",
    // A worker runs one file after the other: starting one and loading what most of them load costs as much as many a file.
    // Files share nothing but modules, so what a module of `test/support` opens, its user closes, and can open again.
    isolate: false,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        // The properties take half a minute of CPU where nothing else runs, and have run beside a whole build.
        test: { name: "pure", include: PURE, testTimeout: 180_000 },
      },
      {
        extends: true,
        test: {
          ...SERVERS,
          name: "services",
          include: ["test/**/*.test.ts"],
          exclude: [...PURE, ...TIMED, ...ALONE, "**/node_modules/**"],
        },
      },
      {
        extends: true,
        // In separate processes: otherwise the memory of other files would be measured as well.
        test: {
          ...SERVERS,
          name: "timed",
          include: TIMED,
          isolate: true,
          maxWorkers: TIMED_AT_ONCE,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: { ...SERVERS, name: "alone", include: ALONE, isolate: true, maxWorkers: 1, sequence: { groupOrder: 2 } },
      },
    ],
  },
});
