/** The verifier, tested with vectors of other programs, with webhooks of the signer, and with changed webhooks. */
import { readFileSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { verifyWebhook, WEBHOOK_VERDICTS } from "../../clients/webhook-verifier.ts";
import { SIGNATURE_HEADER, signatureHeader } from "../../services/webhook-signer/signing.ts";
import { runProgram } from "../support/running-program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const CLIENTS = join(import.meta.dirname, "..", "..", "clients");
const VERIFIER = join(CLIENTS, "webhook-verifier.ts");
const VECTORS = join(CLIENTS, "webhook-vectors.json");

interface Vector {
  readonly name: string;
  readonly secrets: readonly string[];
  readonly header: string;
  readonly body?: string;
  readonly body_base64?: string;
  readonly now_seconds: number;
  readonly tolerance_seconds?: number;
  readonly verdict: string;
}
const { vectors, header_name } = JSON.parse(readFileSync(VECTORS, "utf8")) as {
  readonly vectors: readonly Vector[];
  readonly header_name: string;
};

const NOW_MS = 1_795_176_000_000;
const SECRET = "whsec_3vJt0m4yT8nq1Qe5bW2xK7cZ9uLhRfGdPsAaYoEiN6M";
const NEWER = "whsec_Kq9dZ2rV7wXs4TnJ1mPbYc8uHfLeGaRo0iNtQk5yE3A";
const BODY = JSON.stringify({
  delivery_id: 42,
  event_type: "robotics.paused",
  created_at: "2026-11-20T12:00:00.000Z",
  payload: { filial_id: 1 },
});

describe("the vectors of webhooks", () => {
  it.each(vectors)("$name: $verdict", (vector) => {
    const verdict = verifyWebhook({
      header: vector.header,
      body: vector.body ?? Buffer.from(vector.body_base64 as string, "base64"),
      secrets: vector.secrets,
      nowMs: vector.now_seconds * 1_000,
      ...(vector.tolerance_seconds === undefined ? {} : { toleranceSeconds: vector.tolerance_seconds }),
    });
    expect(verdict).toBe(vector.verdict);
  });

  it("all vectors: each verdict occurs, and the name of the header is the signer's", () => {
    expect(new Set(vectors.map(({ verdict }) => verdict))).toEqual(new Set(WEBHOOK_VERDICTS));
    expect(header_name).toBe(SIGNATURE_HEADER);
  });
});

describe("webhooks of the signer", () => {
  const text = fc.string({ unit: "binary", maxLength: 200 });
  const secret = fc.base64String({ minLength: 4, maxLength: 60 }).map((base64) => `whsec_${base64}`);

  it("a consumer who knows one of the live secrets: valid, as text and as bytes", () => {
    const secrets = fc.uniqueArray(secret, { minLength: 1, maxLength: 2 });
    fc.assert(
      fc.property(text, secrets, fc.nat(), fc.integer({ min: -300, max: 300 }), (body, live, pick, offsetSeconds) => {
        const header = signatureHeader(live, { body, nowMs: NOW_MS });
        const known = [live[pick % live.length] as string];
        const nowMs = NOW_MS + offsetSeconds * 1_000;
        expect(verifyWebhook({ header, body, secrets: known, nowMs })).toBe("valid");
        expect(verifyWebhook({ header, body: Buffer.from(body), secrets: known, nowMs })).toBe("valid");
      }),
    );
  });

  it("a consumer who knows none of them: not valid", () => {
    fc.assert(
      fc.property(text, secret, secret, (body, signing, known) => {
        fc.pre(signing !== known);
        const header = signatureHeader([signing], { body, nowMs: NOW_MS });
        expect(verifyWebhook({ header, body, secrets: [known], nowMs: NOW_MS })).toBe("signature_wrong");
      }),
    );
  });
});

describe("a signed webhook that was changed", () => {
  const header = signatureHeader([SECRET], { body: BODY, nowMs: NOW_MS });
  const verdictOf = (changed: { header?: string; body?: Uint8Array }) =>
    verifyWebhook({ header, body: BODY, secrets: [NEWER, SECRET], nowMs: NOW_MS, ...changed });
  /** All texts that differ in one byte, with each other value of that byte. */
  function* changesOf(original: string): Generator<Buffer> {
    for (const [position, byte] of Buffer.from(original).entries()) {
      for (let other = 0; other < 256; other += 1) {
        if (other === byte) continue;
        const changed = Buffer.from(original);
        changed[position] = other;
        yield changed;
      }
    }
  }

  it("one byte of the header: refused", () => {
    expect(verdictOf({})).toBe("valid");
    const taken = [...changesOf(header)].filter(
      (changed) => verdictOf({ header: changed.toString("latin1") }) === "valid",
    );
    expect(taken).toEqual([]);
  });

  it("one byte of the body: refused", () => {
    for (const body of changesOf(BODY)) expect(verdictOf({ body })).toBe("signature_wrong");
  });

  it("bytes removed from the header or added to it: refused", () => {
    const place = fc.nat({ max: header.length - 1 });
    fc.assert(
      fc.property(place, place, fc.string({ minLength: 1, maxLength: 3 }), (one, other, inserted) => {
        const [from, to] = [Math.min(one, other), Math.max(one, other)];
        const cut = header.slice(0, from) + header.slice(to + 1);
        const longer = header.slice(0, from) + inserted + header.slice(from);
        for (const changed of [cut, longer]) {
          if (changed !== header) expect(verdictOf({ header: changed })).not.toBe("valid");
        }
      }),
    );
  });

  it("one of two signatures: the other one stays valid for a consumer who knows its secret", () => {
    const two = signatureHeader([NEWER, SECRET], { body: BODY, nowMs: NOW_MS });
    const broken = two.replace(/v1=./, (start) => (start === "v1=0" ? "v1=1" : "v1=0"));
    const ask = (secret: string) => verifyWebhook({ header: broken, body: BODY, secrets: [secret], nowMs: NOW_MS });
    expect(ask(SECRET)).toBe("valid");
    expect(ask(NEWER)).toBe("signature_wrong");
  });
});

describe("input that is not valid", () => {
  const header = signatureHeader([SECRET], { body: BODY, nowMs: NOW_MS });
  const ask = (more: object) => verifyWebhook({ header, body: BODY, secrets: [SECRET], nowMs: NOW_MS, ...more });

  it("a missing or malformed header: the verdict names it", () => {
    for (const none of [undefined, null, ""]) expect(ask({ header: none })).toBe("header_missing");
    expect(ask({ header: [header, header] })).toBe("header_malformed");
    expect(ask({ header: [header] })).toBe("header_malformed");
    const nine = header + `,v1=${"0".repeat(64)}`.repeat(8);
    expect(ask({ header: nine })).toBe("header_malformed");
    expect(ask({ header: `${header},v2=${"0".repeat(1_000)}` })).toBe("header_malformed");
    const further = `,v2=${"0".repeat(256)}`;
    expect(ask({ header: header + further.repeat(3) })).toBe("valid");
    expect(ask({ header: header + further.repeat(4) })).toBe("header_malformed");
  });

  it("no secret: throws, because anybody could sign with an empty one", () => {
    for (const secrets of [[], [""], [SECRET, ""], [undefined]])
      expect(() => ask({ secrets, header: "t=1,v1=00" })).toThrow(TypeError);
  });

  it("a tolerance or a clock that is not a number: no webhook is valid", () => {
    expect(ask({ toleranceSeconds: Number.NaN })).not.toBe("valid");
    expect(ask({ nowMs: Number.NaN })).not.toBe("valid");
  });
});

describe("the file of the verifier without the repository", () => {
  const folder = temporaryFolder("verifier");
  afterAll(() => folder.remove());
  const TRIAL = `
    import { readFileSync } from "node:fs";
    const { verifyWebhook } = await import(process.argv[2]);
    const { vectors } = JSON.parse(readFileSync(process.argv[3], "utf8"));
    const wrong = vectors.filter(({ header, body, body_base64, secrets, now_seconds, tolerance_seconds, verdict }) =>
      verdict !== verifyWebhook({ header, body: body ?? Buffer.from(body_base64, "base64"), secrets, nowMs: now_seconds * 1000, toleranceSeconds: tolerance_seconds }));
    process.stdout.write(JSON.stringify({ asked: vectors.length, wrong }));
  `;
  const run = async (module: string, options: string[]): Promise<unknown> => {
    const script = join(folder.path, "trial.mjs");
    writeFileSync(script, TRIAL);
    const program = runProgram(process.execPath, [...options, script, module, VECTORS], {
      cwd: folder.path,
      env: { NODE_NO_WARNINGS: "1" },
    });
    expect(await program.ended, program.output()).toBe(0);
    return JSON.parse(program.output());
  };

  it("plain Node: runs it as it is", async () => {
    expect(await run(VERIFIER, [])).toEqual({ asked: vectors.length, wrong: [] });
  });

  it("its types removed, as in the documentation: runs as JavaScript", async () => {
    const module = join(folder.path, "webhook-verifier.mjs");
    writeFileSync(module, stripTypeScriptTypes(readFileSync(VERIFIER, "utf8")));
    expect(await run(module, ["--no-experimental-strip-types"])).toEqual({ asked: vectors.length, wrong: [] });
  });

  it("its imports: only Node's crypto", () => {
    const imports = readFileSync(VERIFIER, "utf8").match(/^import .*$/gm);
    expect(imports).toEqual(['import { createHmac, timingSafeEqual } from "node:crypto";']);
  });
});
