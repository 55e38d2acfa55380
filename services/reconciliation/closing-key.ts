/** The Ed25519 key that signs closings. Its public half is stored with its first closing and stays readable for good. */
import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";

export interface ClosingKey {
  /** The first 16 hex digits of the SHA-256 of the public key. */
  readonly keyId: string;
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
  /** 64 bytes. */
  sign(text: string): Uint8Array;
}

/** PKCS #8 of an Ed25519 key, up to its 32 bytes (RFC 8410). */
const PKCS8_HEAD = Buffer.from("302e020100300506032b657004220420", "hex");
const PUBLIC_KEY_BYTES = 32;

/** From its 32 secret bytes, as the setting has them. */
export function createClosingKey(secret: Uint8Array): ClosingKey {
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, secret]), format: "der", type: "pkcs8" });
  const publicKey = publicKeyOf(key);
  return { keyId: closingKeyId(publicKey), publicKey, sign: (text) => sign(null, Buffer.from(text), key) };
}

export function closingKeyId(publicKey: Uint8Array): string {
  return createHash("sha256").update(publicKey).digest("hex").slice(0, 16);
}

function publicKeyOf(key: KeyObject): Uint8Array {
  return createPublicKey(key).export({ format: "der", type: "spki" }).subarray(-PUBLIC_KEY_BYTES);
}
