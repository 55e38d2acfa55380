import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const LOG = join(import.meta.dirname, "..", "..", "services", "runtime", "log.ts");

describe("the log", () => {
  it("writes one JSON line, without secrets at any of its levels, and keeps an error's code", () => {
    const secrets = `{ token: "s1", caller: { password: "s2", deep: { credential: "s3" } }, authorization: "s4", code: "s5" }`;
    const program = `
      import { createLog } from ${JSON.stringify(LOG)};
      const log = createLog({ service: "test", level: "info" });
      log.info(${secrets}, "acted");
      log.warn({ err: Object.assign(new Error("away"), { code: "ECONNREFUSED" }) }, "failed");
      log.debug({}, "not written");`;
    const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" });
    const lines = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines).toHaveLength(2);
    expect(stdout).not.toMatch(/s[1-5]"/);
    expect(lines[0]).toMatchObject({ level: "info", process: "test", msg: "acted", token: "[redacted]" });
    expect(lines[1]).toMatchObject({ level: "warn", err: { errorCode: "ECONNREFUSED", message: "away" } });
  });
});
