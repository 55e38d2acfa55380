/** The process of a conformance run by API: the service goes on, whatever it writes. */
import { expect, test, vi } from "vitest";
import { ConformanceRunner } from "../../services/registry/conformance-runner.ts";
import type { RegistryDeps } from "../../services/registry/deps.ts";
import { createLog } from "../../services/runtime/log.ts";

test("a line that is no JSON: it is ignored, and the run ends", async () => {
  const onEnd = vi.fn(async () => undefined);
  const ended: unknown[] = [];
  // The runner stores the lines received; here the stored values are enough.
  const sql = Object.assign(
    async (_: TemplateStringsArray, ...values: unknown[]) => {
      ended.push(values[0]);
      return [{ goes_on: true }];
    },
    { json: (value: unknown) => value },
  );
  const deps = {
    sql,
    log: createLog({ service: "test", level: "silent" }),
    settings: { CONFORMANCE_BASE_URL: "http://127.0.0.1:9" },
  } as unknown as RegistryDeps;
  const prints = `data:text/javascript,process.stdout.write("traced\\n")`;
  const runner = new ConformanceRunner(deps, {
    PATH: process.env["PATH"],
    NODE_OPTIONS: `--import=${encodeURI(prints)}`,
  });
  runner.start({ runId: 1, sandboxId: 1, token: "t", onEnd });
  await vi.waitFor(() => expect(onEnd).toHaveBeenCalledOnce(), { timeout: 30_000 });
  expect(ended.at(-1)).toBe("could_not_run");
});
