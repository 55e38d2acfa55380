/** Notes and envelopes, compared with the examples in their specifications. */
import { createHash, generateKeyPairSync, sign, verify } from "node:crypto";
import { describe, expect, test } from "vitest";
import { envelope, preAuthEncoding, STATEMENT_TYPE } from "../../../services/registry/certification/dsse.ts";
import { checkpoint, logProof, noteKeyId, verifierKey } from "../../../services/registry/certification/note.ts";

const { publicKey, privateKey } = generateKeyPairSync("ed25519");
const name = "pay.example/certificates";
const signer = {
  name,
  publicKey: publicKey.export({ format: "der", type: "spki" }).subarray(-32),
  sign: (text: string): Uint8Array => sign(null, Buffer.from(text), privateKey),
};

describe("a checkpoint", () => {
  const root = createHash("sha256").update("root").digest();
  const note = checkpoint(signer, { size: 20_852_163, root });

  test("its note: three lines, an empty line, and the signature of the three lines", () => {
    const [text = "", signature = ""] = note.split("\n\n");
    expect(text).toBe(`${name}\n20852163\n${root.toString("base64")}`);
    const [, bytes = ""] = /^— pay\.example\/certificates (\S+)\n$/.exec(signature) ?? [];
    const signed = Buffer.from(bytes, "base64");
    expect(signed.subarray(0, 4)).toEqual(noteKeyId(signer));
    expect(verify(null, Buffer.from(`${text}\n`), publicKey, signed.subarray(4))).toBe(true);
    expect(verify(null, Buffer.from(text), publicKey, signed.subarray(4))).toBe(false);
  });

  test("its key id: equal to the one in the specification's example of a verifier key", () => {
    // This is the example `PeterNeumann` in the documentation of Go's package `note`.
    const known = Buffer.from("ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", "base64");
    const example = { name: "PeterNeumann", publicKey: known.subarray(1) };
    expect(verifierKey(example)).toBe("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW");
  });

  test("a proof: the index, the hashes, an empty line, and the checkpoint's note", () => {
    const hashes = ["hash1", "hash2"].map((text) => createHash("sha256").update(text).digest());
    const lines = ["c2sp.org/tlog-proof@v1", "index 5", ...hashes.map((hash) => hash.toString("base64")), "", note];
    expect(logProof({ index: 5, hashes, checkpoint: note })).toBe(lines.join("\n"));
    expect(logProof({ index: 0, hashes: [], checkpoint: note })).toBe(`c2sp.org/tlog-proof@v1\nindex 0\n\n${note}`);
  });
});

describe("an envelope", () => {
  test("what it signs: the specification's example has the same encoding", () => {
    const encoded = preAuthEncoding("http://example.com/HelloWorld", Buffer.from("hello world"));
    expect(encoded.toString()).toBe("DSSEv1 29 http://example.com/HelloWorld 11 hello world");
  });

  test("its content: the signed body, and the signature of the body's encoding", () => {
    const body = Buffer.from(JSON.stringify({ text: "Prüfung" }));
    const signing = { keyId: "a1b2", sign: (bytes: Uint8Array): Uint8Array => sign(null, bytes, privateKey) };
    const { payload, payloadType, signatures } = JSON.parse(envelope(signing, body)) as {
      payload: string;
      payloadType: string;
      signatures: [{ keyid: string; sig: string }];
    };
    expect([payloadType, Buffer.from(payload, "base64")]).toEqual([STATEMENT_TYPE, body]);
    const [{ keyid, sig }] = signatures;
    expect(keyid).toBe("a1b2");
    expect(verify(null, preAuthEncoding(payloadType, body), publicKey, Buffer.from(sig, "base64"))).toBe(true);
  });
});
