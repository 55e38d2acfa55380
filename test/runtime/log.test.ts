import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ERROR_CODES } from "../../gateway/http/errors.ts";
import { mintEnrollmentCode, showEnrollmentCode } from "../../services/registry/enrollment-codes.ts";

const LOG = join(import.meta.dirname, "..", "..", "services", "runtime", "log.ts");

function linesOf(program: string): readonly Record<string, unknown>[] {
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" });
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

describe("the log", () => {
  it("the field `code`: error codes are written, enrollment codes are not", () => {
    const errorCodes = [
      ...ERROR_CODES,
      "ECONNREFUSED",
      "ECONNRESET",
      "EADDRINUSE",
      "EPIPE",
      "57P01",
      "ERR_TLS_CERT_ALTNAME_INVALID",
    ];
    const enrollmentCodes = Array.from({ length: 200 }, () => mintEnrollmentCode());
    const variants = enrollmentCodes.flatMap((code) => [code, code.toLowerCase(), showEnrollmentCode(code)]);
    const [kept, redacted] = linesOf(`
      import { createLog } from ${JSON.stringify(LOG)};
      const log = createLog({ service: "test", level: "info" });
      for (const codes of ${JSON.stringify([errorCodes, variants])}) {
        log.info(Object.fromEntries(codes.map((code, index) => [String(index), { code }])), "codes");
      }`).map((line) => Object.values(line).flatMap((value) => (value as { code?: string } | null)?.code ?? []));
    expect(kept).toEqual(errorCodes);
    expect(new Set(redacted)).toEqual(new Set(["[redacted]"]));
    expect(redacted).toHaveLength(variants.length);
  });

  it("work for a request: each of its lines has the request's id, and later lines have none", () => {
    const lines = linesOf(`
      import { createLog, forRequest } from ${JSON.stringify(LOG)};
      const log = createLog({ service: "test", level: "info" });
      await forRequest("id-1", async () => {
        log.child({ service: "part" }).info("first");
        await new Promise((resolve) => setTimeout(resolve, 1));
        log.info({ requestId: "named" }, "second");
        forRequest(undefined, () => log.info("other work"));
        log.info("third");
      });
      log.info("after");`);
    expect(lines.map(({ msg, requestId }) => [msg, requestId])).toEqual([
      ["first", "id-1"],
      ["second", "named"],
      ["other work", undefined],
      ["third", "id-1"],
      ["after", undefined],
    ]);
  });

  it("the field `code`: a short number is written; one as long as an enrollment code is not", () => {
    const lines = linesOf(`
      import { createLog } from ${JSON.stringify(LOG)};
      const log = createLog({ service: "test", level: "info" });
      for (const code of [1006, 4401, 1234567890]) log.info({ code }, "closed");`);
    expect(lines.map(({ code }) => code)).toEqual([1006, 4401, "[redacted]"]);
  });

  it("the line that counts dropped lines: it has no request id", () => {
    const lines = linesOf(`
      import { createLog, flushLog, forRequest } from ${JSON.stringify(LOG)};
      const log = createLog({ service: "test", level: "info" });
      await forRequest("id-1", async () => {
        for (let line = 0; line < 60; line += 1) log.warn({}, "flood");
        await flushLog();
      });`);
    expect(lines[0]).toMatchObject({ msg: "flood", requestId: "id-1" });
    expect(lines.at(-1)).toMatchObject({ msg: "similar lines were left out", lines: 10 });
    expect(lines.at(-1)).not.toHaveProperty("requestId");
  });

  it("an error with causes: the code of each is written once, also when the causes form a circle", () => {
    const [line] = linesOf(`
      import { createLog } from ${JSON.stringify(LOG)};
      const log = createLog({ service: "test", level: "info" });
      const errorOf = (message, code, cause) => Object.assign(new Error(message, { cause }), { code });
      const refused = errorOf("refused", "ECONNREFUSED");
      const between = new Error("dialled", { cause: refused });
      const down = errorOf("down", "bus_down", between);
      refused.cause = down;
      log.warn({ err: errorOf("no answer", "unavailable", down) }, "failed");`);
    expect(line).toMatchObject({ err: { errorCode: "unavailable", causeCodes: ["bus_down", "ECONNREFUSED"] } });
  });

  it("fields with secrets, also nested ones: one JSON line without them; an error's code is written", () => {
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
