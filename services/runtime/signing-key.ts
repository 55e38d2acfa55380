/** An Ed25519 key of the installation: it signs closings of reconciliation periods, or certification artifacts. */
import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";

export interface SigningKey {
  /** The first 16 hex digits of the SHA-256 of the public key. */
  readonly keyId: string;
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
  /** 64 bytes. */
  sign(message: string | Uint8Array): Uint8Array;
}

/** PKCS #8 of an Ed25519 key, up to its 32 bytes (RFC 8410). */
const PKCS8_HEAD = Buffer.from("302e020100300506032b657004220420", "hex");
const PUBLIC_KEY_BYTES = 32;

/** Creates the key from its 32 secret bytes, which the setting has. */
export function createSigningKey(secret: Uint8Array): SigningKey {
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, secret]), format: "der", type: "pkcs8" });
  const publicKey = publicKeyOf(key);
  const keyId = createHash("sha256").update(publicKey).digest("hex").slice(0, 16);
  return { keyId, publicKey, sign: (message) => sign(null, Buffer.from(message), key) };
}

function publicKeyOf(key: KeyObject): Uint8Array {
  return createPublicKey(key).export({ format: "der", type: "spki" }).subarray(-PUBLIC_KEY_BYTES);
}
