/** The verifier of certificates: what it accepts, and that each changed byte is noticed. */
import { execFileSync, spawnSync } from "node:child_process";
import { generateKeyPairSync, sign } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { NOT_PROVEN, verifyCertificate } from "../../clients/verify-certificate.mjs";
import { envelope } from "../../services/registry/certification/dsse.ts";
import { inclusionProof, leafHash, rootHash } from "../../services/registry/certification/merkle.ts";
import { checkpoint, logProof, verifierKey } from "../../services/registry/certification/note.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const VERIFIER = join(import.meta.dirname, "..", "..", "clients", "verify-certificate.mjs");
const { publicKey, privateKey } = generateKeyPairSync("ed25519");
const signed = (bytes: Uint8Array): Uint8Array => sign(null, bytes, privateKey);
const signer = {
  name: "pay.example/certificates",
  publicKey: publicKey.export({ format: "der", type: "spki" }).subarray(-32),
  sign: (text: string) => signed(Buffer.from(text)),
};
const logKey = verifierKey(signer);

function statementOf(capability: string, validUntil = "2027-11-24T00:00:00.000Z"): string {
  return JSON.stringify({
    _type: "https://in-toto.io/Statement/v1",
    subject: [{ name: "Acme Companion 4.2.0", digest: { sha256: "ab".repeat(32) } }],
    predicateType: "https://in-toto.io/attestation/test-result/v0.1",
    predicate: { result: "PASSED", provider: "Acme", capability, validUntil },
  });
}
const envelopeOf = (statement: string): string => envelope({ keyId: "a1b2", sign: signed }, Buffer.from(statement));
const envelopes = ["enrollment", "presence", "handoff_present", "outcome_report", "display_total"].map((capability) =>
  envelopeOf(statementOf(capability)),
);
const leaves = envelopes.map((text) => leafHash(Buffer.from(text)));
const proofOf = (index: number, of: readonly Uint8Array[] = leaves): string =>
  logProof({
    index,
    hashes: inclusionProof(of, index),
    checkpoint: checkpoint(signer, { size: of.length, root: rootHash(of) }),
  });
const now = new Date("2026-11-24T12:00:00Z");
const certificate = { envelope: envelopes[2] ?? "", proof: proofOf(2), logKey, now };
const isValid = async (changed: Partial<typeof certificate>): Promise<boolean> =>
  verifyCertificate({ ...certificate, ...changed }).then(
    () => true,
    () => false,
  );

const folder = temporaryFolder("certificate");
afterAll(() => folder.remove());

describe("a certificate", () => {
  test("of each leaf: it is valid, and says what it is about", async () => {
    for (const [index, text] of envelopes.entries()) {
      const found = await verifyCertificate({ envelope: text, proof: proofOf(index), logKey, now });
      expect(found).toMatchObject({ index, size: 5, isExpired: false });
    }
    const { statement } = await verifyCertificate(certificate);
    expect(statement.predicate.capability).toBe("handoff_present");
  });

  test("with any byte of its envelope flipped: it is not valid", async () => {
    const bytes = Buffer.from(certificate.envelope);
    for (let at = 0; at < bytes.length; at += 1) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(await isValid({ envelope: changed.toString("latin1") }), `byte ${at}`).toBe(false);
    }
  });

  test("with any byte of its proof flipped: it is not valid", async () => {
    const bytes = Buffer.from(certificate.proof);
    for (let at = 0; at < bytes.length; at += 1) {
      for (const bit of [1, 32]) {
        const changed = Buffer.from(bytes);
        changed[at] = (changed[at] ?? 0) ^ bit;
        expect(
          await isValid({ proof: changed.toString("utf8") }),
          `byte ${at} of ${JSON.stringify(certificate.proof)}`,
        ).toBe(false);
      }
    }
  });

  test("with the proof of another one, or the key of another log: it is not valid", async () => {
    expect(await isValid({ proof: proofOf(1) })).toBe(false);
    expect(await isValid({ logKey: verifierKey({ ...signer, name: "evil.example" }) })).toBe(false);
    const other = generateKeyPairSync("ed25519").publicKey.export({ format: "der", type: "spki" }).subarray(-32);
    expect(await isValid({ logKey: verifierKey({ ...signer, publicKey: other }) })).toBe(false);
  });

  test("that is in a log with its own statement of a forger: the signature of the statement is wrong", async () => {
    const forger = generateKeyPairSync("ed25519").privateKey;
    const forged = envelope(
      { keyId: "a1b2", sign: (bytes) => sign(null, bytes, forger) },
      Buffer.from(statementOf("outcome_report")),
    );
    const proof = proofOf(0, [leafHash(Buffer.from(forged))]);
    await expect(verifyCertificate({ ...certificate, envelope: forged, proof })).rejects.toThrow(
      "The signature of the certificate is wrong.",
    );
  });
});

describe("the program", () => {
  const [file, proofFile] = [join(folder.path, "c.json"), join(folder.path, "c.tlog-proof")];
  const run = (...args: readonly string[]) => spawnSync(process.execPath, [VERIFIER, ...args], { encoding: "utf8" });

  test("valid 0, not valid 1, expired 2; and what it does not prove", () => {
    writeFileSync(file, certificate.envelope);
    writeFileSync(proofFile, certificate.proof);
    const valid = execFileSync(process.execPath, [VERIFIER, file, proofFile, "--key", logKey, "--now", "2026-11-24"], {
      encoding: "utf8",
    });
    expect(valid).toContain(
      "Valid until 2027-11-24T00:00:00.000Z: Acme Companion 4.2.0: Acme, handoff_present, PASSED.",
    );
    for (const line of NOT_PROVEN) expect(valid).toContain(line);
    expect(run(file, proofFile, "--key", logKey, "--now", "2028-01-01").status).toBe(2);
    writeFileSync(proofFile, proofOf(1));
    const wrong = run(file, proofFile, "--key", logKey);
    expect([wrong.status, wrong.stderr]).toEqual([1, "Not valid: The certificate is not in the log.\n"]);
    expect(run(file).status).toBe(1);
  });
});
