/** `docs/webhooks.md`: what it shows is run, and its numbers are those of the service. */
import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { DELIVERY_EVENT_TYPES } from "../../services/bus/messages/webhook-deliveries.ts";
import { SIGNER_LIMITS, TARGET_LIMITS } from "../../services/webhook-signer/limits.ts";
import { SIGNATURE_HEADER, signatureHeader } from "../../services/webhook-signer/signing.ts";
import { freePort } from "../support/free-port.ts";
import { CLIENTS_FOLDER, guide, guideBlock, isInstalled } from "../support/guide.ts";
import { onlyWhere } from "../support/only-where.ts";
import { runProgram } from "../support/running-program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const VECTORS = join(CLIENTS_FOLDER, "webhook-vectors.json");
const folder = temporaryFolder("guide");
afterAll(() => folder.remove());

const SECRET = "whsec_3vJt0m4yT8nq1Qe5bW2xK7cZ9uLhRfGdPsAaYoEiN6M";
const NEWER = "whsec_Kq9dZ2rV7wXs4TnJ1mPbYc8uHfLeGaRo0iNtQk5yE3A";
const BODY =
  '{"delivery_id":43,"event_type":"robotics.paused","created_at":"2026-11-20T12:00:00.120Z","payload":{"filial_id":1}}';

describe("the example for Node", () => {
  it("takes what is signed and refuses what is not, with the types of the verifier taken off", async () => {
    copyFileSync(join(CLIENTS_FOLDER, "webhook-verifier.ts"), join(folder.path, "webhook-verifier.ts"));
    execFileSync("sh", ["-c", guideBlock("sh", "stripTypeScriptTypes")], {
      cwd: folder.path,
      env: { PATH: process.env["PATH"], NODE_NO_WARNINGS: "1" },
    });
    writeFileSync(join(folder.path, "server.mjs"), guideBlock("js", "verifyWebhook"));
    const port = await freePort();
    const env = { PORT: String(port), WEBHOOK_SECRETS: `${SECRET} ${NEWER}`, NODE_NO_WARNINGS: "1" };
    const server = runProgram(process.execPath, ["--no-experimental-strip-types", "server.mjs"], {
      cwd: folder.path,
      env,
    });
    const post = async (headers: Record<string, string>, body: string) => {
      for (let tries = 0; ; tries += 1) {
        try {
          return (await fetch(`http://127.0.0.1:${port}/`, { method: "POST", headers, body })).status;
        } catch (error) {
          if (tries >= 100) throw error;
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
      }
    };
    const headers = { [SIGNATURE_HEADER]: signatureHeader([SECRET], { body: BODY, nowMs: Date.now() }) };
    expect(await post(headers, BODY)).toBe(204);
    expect(await post(headers, BODY.replace("1}", "2}"))).toBe(401);
    expect(await post({}, BODY)).toBe(401);
    await server.waitFor(/^robotics\.paused$/m);
    server.process.kill();
    await server.ended;
  });
});

describe("the example for Python", () => {
  const DRIVER = `
import base64, json, sys
wrong = []
for vector in json.load(open(sys.argv[1], encoding="utf-8"))["vectors"]:
    body = base64.b64decode(vector["body_base64"]) if "body_base64" in vector else vector["body"].encode()
    time.time = lambda: vector["now_seconds"]
    good = verify(vector["header"], body, vector["secrets"], vector.get("tolerance_seconds", 300))
    if good != (vector["verdict"] == "valid"):
        wrong.append(vector["name"])
print(json.dumps(wrong))
`;
  it.runIf(onlyWhere(isInstalled("python3", "--version"), "the guide's example for Python"))(
    "says of every vector what the verifier says",
    () => {
      writeFileSync(join(folder.path, "verify.py"), guideBlock("python", "def verify") + DRIVER);
      const output = execFileSync("python3", ["verify.py", VECTORS], { cwd: folder.path, encoding: "utf8" });
      expect(JSON.parse(output)).toEqual([]);
    },
  );
});

describe("the example for a shell", () => {
  const script = guideBlock("sh", "openssl dgst");
  const exitOf = (header: string, body: string, secret = SECRET): number | null =>
    spawnSync("sh", ["-c", script], { input: body, env: { PATH: process.env["PATH"], HEADER: header, SECRET: secret } })
      .status;

  it.runIf(onlyWhere(isInstalled("openssl", "version"), "the guide's example for a shell"))(
    "takes what is signed and refuses what is not",
    () => {
      const nowMs = Date.now();
      const header = signatureHeader([SECRET], { body: BODY, nowMs });
      const both = signatureHeader([NEWER, SECRET], { body: BODY, nowMs });
      expect([exitOf(header, BODY), exitOf(both, BODY), exitOf(both, BODY, NEWER)]).toEqual([0, 0, 0]);
      const old = signatureHeader([SECRET], { body: BODY, nowMs: nowMs - 400_000 });
      const early = signatureHeader([SECRET], { body: BODY, nowMs: nowMs + 400_000 });
      const bad = [
        exitOf(header, `${BODY} `),
        exitOf(header, BODY, NEWER),
        exitOf(old, BODY),
        exitOf(early, BODY),
        exitOf("", BODY),
      ];
      expect(bad).toEqual([1, 1, 1, 1, 1]);
    },
  );
});

describe("the guide's numbers", () => {
  const MS: Record<string, number> = { s: 1_000, min: 60_000, h: 3_600_000 };

  it("of retries are the service's", () => {
    const rows = [...guide.matchAll(/^\| (\d+) \| (\d+) (s|min|h) \|$/gm)];
    expect(rows.map(([, attempt]) => Number(attempt))).toEqual(
      SIGNER_LIMITS.retryAfterMs.map((_wait, index) => index + 2),
    );
    expect(rows.map(([, , count, unit]) => Number(count) * (MS[unit as string] as number))).toEqual(
      SIGNER_LIMITS.retryAfterMs,
    );
    expect([SIGNER_LIMITS.retryJitter, SIGNER_LIMITS.longestRetryAfterMs]).toEqual([0.2, 3_600_000]);
  });

  it("of waits, sizes and counts are the service's", () => {
    const { attemptMs, dnsMs, connectMs, answerBytes } = TARGET_LIMITS;
    expect([attemptMs, dnsMs, connectMs, answerBytes]).toEqual([10_000, 2_000, 3_000, 16 * 1_024]);
    const { failuresToOpen, openMs, longestOpenMs, failingToDisableMs, failuresToDisable } = SIGNER_LIMITS;
    expect([failuresToOpen, openMs, longestOpenMs]).toEqual([5, 30_000, 15 * 60_000]);
    expect([failingToDisableMs, failuresToDisable]).toEqual([5 * 24 * 3_600_000, 20]);
    const { endpointsPerConsumer, inFlightPerEndpoint, inFlightPerOwner, liveSecrets } = SIGNER_LIMITS;
    expect([endpointsPerConsumer, inFlightPerEndpoint, inFlightPerOwner, liveSecrets]).toEqual([5, 4, 16, 2]);
  });

  it("and its events are those that there are", () => {
    const rows = [...guide.matchAll(/^\| `([\w.]+\.\w+)` \|/gm)].map(([, eventType]) => eventType);
    expect(rows).toEqual(DELIVERY_EVENT_TYPES);
  });
});
