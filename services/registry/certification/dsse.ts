/** A signed statement (DSSE 1.0). The signature covers the bytes as they are stored, so a verifier need not normalize them. */
export const STATEMENT_TYPE = "application/vnd.in-toto+json";

interface EnvelopeSigner {
  readonly keyId: string;
  /** 64 bytes of Ed25519. */
  sign(bytes: Uint8Array): Uint8Array;
}

/** The bytes that are signed: type and body, each with its length, so that the border between them cannot move. */
export function preAuthEncoding(type: string, body: Uint8Array): Buffer {
  const head = `DSSEv1 ${Buffer.byteLength(type)} ${type} ${body.length} `;
  return Buffer.concat([Buffer.from(head), body]);
}

/** The envelope as JSON. */
export function envelope(signer: EnvelopeSigner, body: Uint8Array): string {
  const signature = signer.sign(preAuthEncoding(STATEMENT_TYPE, body));
  return JSON.stringify({
    payload: Buffer.from(body).toString("base64"),
    payloadType: STATEMENT_TYPE,
    signatures: [{ keyid: signer.keyId, sig: Buffer.from(signature).toString("base64") }],
  });
}
