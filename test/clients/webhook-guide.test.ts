/**
 * `docs/webhooks.md` and the examples of the AsyncAPI document. The tests run the examples, also against senders without the
 * secret, and compare the numbers with those of the service.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { copyFileSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { verifyWebhook } from "../../clients/webhook-verifier.ts";
import { ASYNCAPI_FILE } from "../../gateway/api/meta/pages.ts";
import { DELIVERY_EVENT_TYPES } from "../../services/bus/messages/webhook-deliveries.ts";
import { SIGNER_LIMITS, TARGET_LIMITS } from "../../services/webhook-signer/limits.ts";
import { SIGNATURE_HEADER, signatureHeader } from "../../services/webhook-signer/signing.ts";
import { freePort } from "../support/free-port.ts";
import { CLIENTS_FOLDER, guide, guideBlock, isInstalled } from "../support/guide.ts";
import { onlyWhere } from "../support/only-where.ts";
import { type RunningProgram, runProgram } from "../support/running-program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const VECTORS = join(CLIENTS_FOLDER, "webhook-vectors.json");
const folder = temporaryFolder("guide");
afterAll(() => folder.remove());

const SECRET = "whsec_3vJt0m4yT8nq1Qe5bW2xK7cZ9uLhRfGdPsAaYoEiN6M";
const NEWER = "whsec_Kq9dZ2rV7wXs4TnJ1mPbYc8uHfLeGaRo0iNtQk5yE3A";
const BODY =
  '{"delivery_id":43,"event_type":"robotics.paused","created_at":"2026-11-20T12:00:00.120Z","payload":{"filial_id":1}}';
const signed = (body: string) => signatureHeader([SECRET], { body, nowMs: Date.now() });
const nowSeconds = () => Math.floor(Date.now() / 1_000);
/** A signature by an attacker who knows that the key is empty, or one character of the alphabet. */
const signedWith = (key: string): string => {
  const t = nowSeconds();
  return `t=${t},v1=${createHmac("sha256", key).update(`${t}.${BODY}`).digest("hex")}`;
};

describe("the guide's example for Node", () => {
  let port: number;
  let server: RunningProgram;

  const start = (secrets: string) =>
    runProgram(process.execPath, ["--no-experimental-strip-types", "server.mjs"], {
      cwd: folder.path,
      env: { PORT: String(port), WEBHOOK_SECRETS: secrets, NODE_NO_WARNINGS: "1" },
    });
  const post = async (body: string, header?: string): Promise<number> => {
    const headers: Record<string, string> = header === undefined ? {} : { [SIGNATURE_HEADER]: header };
    return (await fetch(`http://127.0.0.1:${port}/`, { method: "POST", headers, body })).status;
  };
  /** Sends a request over a separate connection. Resolves when the request is written. */
  const connected = async (request: string) => {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => undefined).resume();
    await new Promise((resolve) => socket.once("connect", resolve));
    await new Promise((resolve) => socket.write(request, resolve));
    return socket;
  };

  beforeAll(() => {
    copyFileSync(join(CLIENTS_FOLDER, "webhook-verifier.ts"), join(folder.path, "webhook-verifier.ts"));
    // This script of the guide removes the types from the verifier.
    const env = { PATH: process.env["PATH"], NODE_NO_WARNINGS: "1" };
    execFileSync("sh", ["-c", guideBlock("sh", "stripTypeScriptTypes")], { cwd: folder.path, env });
    writeFileSync(join(folder.path, "server.mjs"), guideBlock("js", "verifyWebhook"));
  });
  // Each test starts another program, because an attack may end it.
  beforeEach(async () => {
    port = await freePort();
    // There is a space after the last secret, as an environment may have it.
    server = start(`${SECRET} ${NEWER} `);
    await vi.waitFor(() => fetch(`http://127.0.0.1:${port}/`), { timeout: 60_000, interval: 50 });
  });
  afterEach(async () => {
    server.process.kill();
    await server.ended;
  });

  it("a signed webhook: accepted; a changed, an unsigned or a wrongly signed one: refused", async () => {
    expect(await post(BODY, signed(BODY))).toBe(204);
    await server.waitFor(/^robotics\.paused$/m);
    expect(await post(BODY.replace("1}", "2}"), signed(BODY))).toBe(401);
    expect(await post(BODY)).toBe(401);
    expect(await post(BODY, signedWith(""))).toBe(401);
  });

  it("an unsigned request that is aborted: the program keeps running", async () => {
    const socket = await connected("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{");
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.destroy();
    await closed;
    expect(await post(BODY, signed(BODY))).toBe(204);
  });

  it("a signed body that is not JSON, or not an object: 400, and the program keeps running", async () => {
    for (const body of ["no JSON", "", "null"]) expect(await post(body, signed(body)), body).toBe(400);
    expect(await post(BODY, signed(BODY))).toBe(204);
  });

  it("a body that is too long: the program stops reading it", async () => {
    const request = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n${"x".repeat(20_000)}`;
    const socket = await connected(request);
    if (!socket.closed) await new Promise((resolve) => socket.once("close", resolve));
    expect(await post(BODY, signed(BODY))).toBe(204);
  });

  it("no secret: the program does not start", async () => {
    expect(await start(" ").ended).toBe(1);
  });
});

describe.runIf(onlyWhere(isInstalled("python3", "--version"), "the guide's example for Python"))(
  "the guide's example for Python",
  () => {
    /** Runs the example with the lines of `driver` after it. */
    const run = (driver: string, args: readonly string[], input = ""): unknown => {
      writeFileSync(join(folder.path, "verify.py"), guideBlock("python", "def verify") + driver);
      const options = { cwd: folder.path, input, encoding: "utf8" } as const;
      return JSON.parse(execFileSync("python3", ["verify.py", ...args], options));
    };
    const VECTORS_DRIVER = `
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
    const ATTACKS_DRIVER = `
import json, sys
def answer(header, secrets, body, tolerance=300):
    try:
        return verify(header, body.encode(), secrets, tolerance)
    except TypeError:
        return "TypeError"
print(json.dumps([answer(**asked) for asked in json.load(sys.stdin)]))
`;
    const verify = (questions: readonly object[]): unknown => {
      const all = questions.map((one) => ({ secrets: [SECRET], body: BODY, ...one }));
      // JSON has no such number, but Python's parser accepts the word.
      return run(ATTACKS_DRIVER, [], JSON.stringify(all).replace('"NaN"', "NaN"));
    };

    it("each vector: the same verdict as the verifier's", () => {
      expect(run(VECTORS_DRIVER, [VECTORS])).toEqual([]);
    });

    it("no list of secrets, or an empty secret in it: raises, for any signature", () => {
      const attacks = [
        { header: signedWith("w"), secrets: SECRET },
        { header: signedWith(""), secrets: [""] },
        { header: signedWith(""), secrets: [SECRET, ""] },
        { header: signedWith(""), secrets: "" },
        { header: signedWith(""), secrets: [] },
        { header: signedWith(""), secrets: null },
      ];
      expect(verify(attacks)).toEqual(attacks.map(() => "TypeError"));
      expect(verify([{ header: signed(BODY) }])).toEqual([true]);
    });

    it("a header that is too long, or a tolerance that is not a number: refused", () => {
      const header = signed(BODY);
      const zeros = `,v1=${"0".repeat(64)}`;
      const bad = [
        { header: header + zeros.repeat(8) },
        { header: header + `,v2=${"0".repeat(256)}`.repeat(4) },
        { header: `${header},v1=ab` },
        { header: null },
        { header: signatureHeader([SECRET], { body: BODY, nowMs: 1_000_000_000 }), tolerance: "NaN" },
      ];
      expect(verify(bad)).toEqual(bad.map(() => false));
      expect(verify([{ header: header + zeros.repeat(7) }])).toEqual([true]);
    });
  },
);

describe("the guide's example for a shell", () => {
  const exitOf = (env: Readonly<Record<string, string>>, body = BODY) =>
    spawnSync("/bin/sh", ["-c", guideBlock("sh", "openssl dgst")], {
      input: body,
      env: { PATH: process.env["PATH"], ...env },
    }).status;

  describe.runIf(onlyWhere(isInstalled("openssl", "version"), "the guide's example for a shell"))(
    "with openssl",
    () => {
      it("a signed webhook: accepted; a changed, a foreign, an old or an early one: refused", () => {
        const nowMs = Date.now();
        const HEADER = signed(BODY);
        const both = signatureHeader([NEWER, SECRET], { body: BODY, nowMs });
        const good = [
          { HEADER, SECRET },
          { HEADER: both, SECRET },
          { HEADER: both, SECRET: NEWER },
        ];
        expect(good.map((env) => exitOf(env))).toEqual([0, 0, 0]);
        const old = signatureHeader([SECRET], { body: BODY, nowMs: nowMs - 400_000 });
        const early = signatureHeader([SECRET], { body: BODY, nowMs: nowMs + 400_000 });
        const bad = [
          { HEADER, SECRET: NEWER },
          { HEADER: old, SECRET },
          { HEADER: early, SECRET },
          { HEADER: "", SECRET },
        ];
        expect([exitOf({ HEADER, SECRET }, `${BODY} `), ...bad.map((env) => exitOf(env))]).toEqual([1, 1, 1, 1, 1]);
      });

      it("no secret, no signature, or text around it: refused", () => {
        const bare = `t=${nowSeconds()}`;
        const header = signed(BODY);
        const attacks = [
          { HEADER: signedWith(""), SECRET: "" },
          { HEADER: signedWith("") },
          { SECRET },
          { HEADER: `${bare},v1=,`, SECRET },
          { HEADER: `${bare},v1=`, SECRET },
          { HEADER: `${bare},v1=*`, SECRET },
          { HEADER: `x\n${header}`, SECRET },
          { HEADER: `${header}\nx`, SECRET },
        ] as Readonly<Record<string, string>>[];
        expect(attacks.filter((env) => exitOf(env) === 0)).toEqual([]);
      });
    },
  );

  it("a machine without openssl: refuses each webhook", () => {
    const programs = join(folder.path, "programs");
    execFileSync("mkdir", [programs]);
    for (const name of ["sed", "date", "cat", "cut"]) {
      const path = execFileSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim();
      symlinkSync(path, join(programs, name));
    }
    const exit = (header: string) => exitOf({ PATH: programs, HEADER: header, SECRET });
    expect([exit(`t=${nowSeconds()},v1=,`), exit(`t=${nowSeconds()},v1=`), exit(signed(BODY))]).toEqual([2, 2, 2]);
  });
});

describe("the numbers of the guide", () => {
  const MS: Record<string, number> = { s: 1_000, min: 60_000, h: 3_600_000 };

  it("retries: the same as the service's", () => {
    const rows = [...guide.matchAll(/^\| (\d+) \| (\d+) (s|min|h) \|$/gm)];
    expect(rows.map(([, attempt]) => Number(attempt))).toEqual(
      SIGNER_LIMITS.retryAfterMs.map((_wait, index) => index + 2),
    );
    expect(rows.map(([, , count, unit]) => Number(count) * (MS[unit as string] as number))).toEqual(
      SIGNER_LIMITS.retryAfterMs,
    );
    expect([SIGNER_LIMITS.retryJitter, SIGNER_LIMITS.longestRetryAfterMs]).toEqual([0.2, 3_600_000]);
  });

  it("waits, sizes and counts: the same as the service's", () => {
    const { attemptMs, dnsMs, connectMs, answerBytes } = TARGET_LIMITS;
    expect([attemptMs, dnsMs, connectMs, answerBytes]).toEqual([10_000, 2_000, 3_000, 16 * 1_024]);
    const { failuresToOpen, openMs, longestOpenMs, failingToDisableMs, failuresToDisable } = SIGNER_LIMITS;
    expect([failuresToOpen, openMs, longestOpenMs]).toEqual([5, 30_000, 15 * 60_000]);
    expect([failingToDisableMs, failuresToDisable]).toEqual([5 * 24 * 3_600_000, 20]);
    const { endpointsPerConsumer, inFlightPerEndpoint, inFlightPerOwner, liveSecrets } = SIGNER_LIMITS;
    expect([endpointsPerConsumer, inFlightPerEndpoint, inFlightPerOwner, liveSecrets]).toEqual([5, 4, 16, 2]);
  });

  it("types of events: the same as the service's", () => {
    const rows = [...guide.matchAll(/^\| `([\w.]+\.\w+)` \|/gm)].map(([, eventType]) => eventType);
    expect(rows).toEqual(DELIVERY_EVENT_TYPES);
  });
});

interface Example {
  readonly summary: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: unknown;
}
const asyncApi = JSON.parse(readFileSync(ASYNCAPI_FILE, "utf8")) as {
  readonly components: {
    readonly messages: Record<string, { readonly name: string; readonly examples: readonly Example[] }>;
    readonly schemas: { readonly WebhookHeaders: { readonly properties: Record<string, { examples?: string[] }> } };
  };
};
const { vectors } = JSON.parse(readFileSync(VECTORS, "utf8")) as {
  readonly vectors: readonly { readonly secrets: readonly string[]; readonly now_seconds: number }[];
};
const VECTOR_SECRET = vectors[0]?.secrets[0] as string;

/** The secret and the time that a text names. A reader of the document has nothing else. */
function namedIn(text: string): { readonly secrets: string[]; readonly nowMs: number } {
  return {
    secrets: [/whsec_\w+/.exec(text)?.[0] ?? "none"],
    nowMs: Number(/\bt=(\d+)/.exec(text)?.[1]) * 1_000,
  };
}

describe("the examples of the AsyncAPI document", () => {
  const examples = Object.values(asyncApi.components.messages).flatMap(({ name, examples: of }) =>
    of.map((example) => ({ name, example })),
  );

  it("one for each type of event", () => {
    expect(examples.map(({ name }) => name).toSorted()).toEqual(DELIVERY_EVENT_TYPES.toSorted());
  });

  it.each(examples)("$name: valid by the secret and the time that the example names", ({ example }) => {
    const { secrets, nowMs } = namedIn(example.summary);
    const body = JSON.stringify(example.payload);
    const header = example.headers[SIGNATURE_HEADER];
    expect(secrets).toEqual([VECTOR_SECRET]);
    expect(verifyWebhook({ header, body, secrets, nowMs })).toBe("valid");
    expect(verifyWebhook({ header, body: `${body} `, secrets, nowMs })).toBe("signature_wrong");
  });

  it("the example of the header: one of them", () => {
    const shown = asyncApi.components.schemas.WebhookHeaders.properties[SIGNATURE_HEADER]?.examples ?? [];
    expect(shown).toHaveLength(1);
    expect(examples.map(({ example }) => example.headers[SIGNATURE_HEADER])).toContain(shown[0]);
  });
});

it("the guide's example of a webhook: valid by the secret beside it", () => {
  const [, header, body, after = ""] =
    /^X-Service-Robotics-Signature: (\S+)\n\n(\{.*\})\n```\n\n([^\n]*)/m.exec(guide) ?? [];
  const { secrets } = namedIn(after);
  const { nowMs } = namedIn(header ?? "");
  expect(secrets).toEqual([VECTOR_SECRET]);
  expect(verifyWebhook({ header, body: body ?? "", secrets, nowMs })).toBe("valid");
});
