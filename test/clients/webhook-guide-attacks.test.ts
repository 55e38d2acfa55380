/** The examples of `docs/webhooks.md` against who has no secret: none takes what is not signed, and none ends by it. */
import { execFileSync, spawnSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { copyFileSync, symlinkSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { SIGNATURE_HEADER, signatureHeader } from "../../services/webhook-signer/signing.ts";
import { freePort } from "../support/free-port.ts";
import { CLIENTS_FOLDER, guideBlock, isInstalled } from "../support/guide.ts";
import { onlyWhere } from "../support/only-where.ts";
import { runProgram } from "../support/running-program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder("guide-attacks");
afterAll(() => folder.remove());

const SECRET = "whsec_3vJt0m4yT8nq1Qe5bW2xK7cZ9uLhRfGdPsAaYoEiN6M";
const BODY = '{"delivery_id":43,"event_type":"robotics.paused"}';
const signed = (body: string) => signatureHeader([SECRET], { body, nowMs: Date.now() });
const nowSeconds = () => Math.floor(Date.now() / 1_000);
/** What anybody can make who knows that the key is empty or one character of the alphabet. */
const signedWith = (key: string): string => {
  const t = nowSeconds();
  return `t=${t},v1=${createHmac("sha256", key).update(`${t}.${BODY}`).digest("hex")}`;
};

describe("the example for Node", () => {
  let port: number;
  let server: ReturnType<typeof runProgram>;

  /** With the secrets as an environment may well have them: a space behind the last one. */
  const start = (secrets: string) =>
    runProgram(process.execPath, ["--no-experimental-strip-types", "server.mjs"], {
      cwd: folder.path,
      env: { PORT: String(port), WEBHOOK_SECRETS: secrets, NODE_NO_WARNINGS: "1" },
    });
  const post = (body: string, header: string) =>
    fetch(`http://127.0.0.1:${port}/`, { method: "POST", headers: { [SIGNATURE_HEADER]: header }, body });
  const isUp = async (): Promise<number> => (await post(BODY, signed(BODY))).status;

  beforeAll(async () => {
    copyFileSync(join(CLIENTS_FOLDER, "webhook-verifier.ts"), join(folder.path, "webhook-verifier.ts"));
    const env = { PATH: process.env["PATH"], NODE_NO_WARNINGS: "1" };
    execFileSync("sh", ["-c", guideBlock("sh", "stripTypeScriptTypes")], { cwd: folder.path, env });
    writeFileSync(join(folder.path, "server.mjs"), guideBlock("js", "verifyWebhook"));
  });
  // One of its own for each test: what ends one by one attack tells nothing of the next.
  beforeEach(async () => {
    port = await freePort();
    server = start(`${SECRET} `);
    await vi.waitFor(() => fetch(`http://127.0.0.1:${port}/`), { timeout: 60_000, interval: 50 });
  });
  afterEach(async () => {
    server.process.kill();
    await server.ended;
  });

  it("takes what is signed although the list of secrets ends in a space", async () => {
    expect(await isUp()).toBe(204);
    expect((await post(BODY, signedWith(""))).status).toBe(401);
  });

  it("outlives a request that breaks off, unsigned", async () => {
    const socket = connect(port, "127.0.0.1");
    await new Promise((resolve) => socket.once("connect", resolve));
    socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{");
    await new Promise((resolve) => setTimeout(resolve, 50));
    socket.destroy();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await isUp()).toBe(204);
  });

  it("outlives what is signed and no JSON, or no object, and says 400", async () => {
    for (const body of ["no JSON", "", "null"]) expect((await post(body, signed(body))).status, body).toBe(400);
    expect(await isUp()).toBe(204);
  });

  it("reads no more of a body than it must", async () => {
    const socket = connect(port, "127.0.0.1");
    const ended = new Promise((resolve) => socket.once("close", resolve));
    socket.on("error", () => undefined).resume();
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n${"x".repeat(20_000)}`);
    await ended;
    expect(await isUp()).toBe(204);
  });

  it("does not start without a secret", async () => {
    expect(await start(" ").ended).toBe(1);
  });
});

describe("the example for Python", () => {
  const DRIVER = `
import json, sys
def answer(header, secrets, body, tolerance=300):
    try:
        return verify(header, body.encode(), secrets, tolerance)
    except TypeError:
        return "TypeError"
print(json.dumps([answer(**asked) for asked in json.load(sys.stdin)]))
`;
  const verify = (asked: readonly object[]): unknown => {
    writeFileSync(join(folder.path, "attack.py"), guideBlock("python", "def verify") + DRIVER);
    // JSON has no such number; Python's reader takes the word for it.
    const input = JSON.stringify(asked.map((one) => ({ secrets: [SECRET], body: BODY, ...one }))).replace(
      '"NaN"',
      "NaN",
    );
    return JSON.parse(execFileSync("python3", ["attack.py"], { cwd: folder.path, input, encoding: "utf8" }));
  };

  it.runIf(onlyWhere(isInstalled("python3", "--version"), "attacks on the guide's example for Python"))(
    "raises without a list of secrets that are none of them empty, whatever is signed",
    () => {
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
    },
  );

  it.runIf(onlyWhere(isInstalled("python3", "--version"), "attacks on the guide's example for Python"))(
    "computes nothing for a header of any length, and holds the time against a number only",
    () => {
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
    },
  );
});

describe("the example for a shell", () => {
  const exitOf = (env: Readonly<Record<string, string>>) =>
    spawnSync("/bin/sh", ["-c", guideBlock("sh", "openssl dgst")], {
      input: BODY,
      env: { PATH: process.env["PATH"], ...env },
    }).status;

  it.runIf(onlyWhere(isInstalled("openssl", "version"), "attacks on the guide's example for a shell"))(
    "takes nothing without a secret, without a signature and around one",
    () => {
      const bare = `t=${nowSeconds()}`;
      const header = signed(BODY);
      expect(exitOf({ HEADER: header, SECRET })).toBe(0);
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
    },
  );

  it("takes nothing where openssl is missing", () => {
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
