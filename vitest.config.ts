import { defineConfig } from "vitest/config";

const PURE = ["test/machines/**/*.test.ts", "test/tidy.test.ts", "test/deploy/lock-file.test.ts"];

export default defineConfig({
  test: {
    // No retries: a test that fails now and then is a defect in the test or in the product.
    retry: 0,
    // Two cores are the smallest machine that this must pass on. Tests wait much, so one more worker than cores; more only
    // make time-outs of each other.
    maxWorkers: 3,
    pool: "forks",
    projects: [
      {
        extends: true,
        // The properties take half a minute of CPU where nothing else runs, and have run beside a whole build.
        test: { name: "pure", include: PURE, testTimeout: 180_000 },
      },
      {
        extends: true,
        test: {
          name: "services",
          include: ["test/**/*.test.ts"],
          exclude: [...PURE, "**/node_modules/**"],
          globalSetup: ["test/support/global-servers.ts"],
          testTimeout: 30_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
