import { defineConfig } from "vitest/config";
import { LongestFirst } from "./test/support/longest-first.ts";

const PURE = [
  "test/machines/**/*.test.ts",
  "test/tidy.test.ts",
  "test/deploy/lock-file.test.ts",
  "test/cluster/judge.test.ts",
  "test/mutants/mutants.test.ts",
];
/** What holds a throughput against a bound, or computes much while it is timed: alone on the machine, at the end. */
const ALONE = [
  "test/reconciliation/stop.test.ts",
  "test/deploy/second-start.test.ts",
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
    // The smallest machine on which the tests must pass has two cores. Tests wait much: three workers keep both cores busy, and with
    // four a slow machine is too busy for tests that hold milliseconds against a bound.
    maxWorkers: 3,
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
          exclude: [...PURE, ...ALONE, "**/node_modules/**"],
        },
      },
      {
        extends: true,
        // In separate processes: otherwise the memory of other files would be measured as well.
        test: { ...SERVERS, name: "alone", include: ALONE, isolate: true, maxWorkers: 1, sequence: { groupOrder: 1 } },
      },
    ],
  },
});
