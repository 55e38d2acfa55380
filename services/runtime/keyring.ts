/**
 * Encrypts stored secrets: AES-256-GCM with a key from the environment. The place of a secret is authenticated, so that
 * a row that was copied to another place cannot be decrypted there.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { z } from "zod";

const ALGORITHM = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export interface SealedSecret {
  readonly keyId: string;
  readonly nonce: Uint8Array;
  /** The ciphertext and the tag. */
  readonly sealed: Uint8Array;
}

/** The place of a secret, as one text: its kind, its owner and its name. It never changes for a stored secret. */
type SecretPlace = string;

export interface Keyring {
  /** The key that encrypts. */
  readonly currentKeyId: string;
  has(keyId: string): boolean;
  seal(place: SecretPlace, secret: string): SealedSecret;
  /** Throws when the row was changed, or when its key is missing. */
  open(place: SecretPlace, sealed: SealedSecret): string;
}

/** `current` encrypts; all keys decrypt. */
export function createKeyring(current: Buffer, old: readonly Buffer[]): Keyring {
  const keys = new Map([current, ...old].map((key) => [keyIdOf(key), key]));
  const currentKeyId = keyIdOf(current);
  return {
    currentKeyId,
    has: (keyId) => keys.has(keyId),
    seal(place, secret) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(ALGORITHM, current, nonce).setAAD(Buffer.from(place));
      const sealed = Buffer.concat([cipher.update(secret, "utf8"), cipher.final(), cipher.getAuthTag()]);
      return { keyId: currentKeyId, nonce, sealed };
    },
    open(place, { keyId, nonce, sealed }) {
      const key = keys.get(keyId);
      if (key === undefined) throw new Error(`The key ${keyId} of a stored secret is not set.`);
      const decipher = createDecipheriv(ALGORITHM, key, nonce).setAAD(Buffer.from(place));
      decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES));
      const text = Buffer.concat([decipher.update(sealed.subarray(0, sealed.length - TAG_BYTES)), decipher.final()]);
      return text.toString("utf8");
    },
  };
}

/** The id of a key is the beginning of its hash, which reveals nothing about the key. */
function keyIdOf(key: Buffer): string {
  return createHash("sha256").update(key).digest("hex").slice(0, 16);
}

const KEY_BYTES = 32;
/** The description of a key, for the explanation of a setting. */
export const SECRETS_KEY_MEANING = `${KEY_BYTES} random bytes in base64url`;
const KEY_SENTENCE = `it must be ${SECRETS_KEY_MEANING} (43 characters)`;

/** One key: 32 bytes in base64url. */
export const secretsKey = z
  .string(KEY_SENTENCE)
  .transform((text) => Buffer.from(text, "base64url"))
  .refine((bytes) => bytes.length === KEY_BYTES, KEY_SENTENCE);

/** Earlier keys, separated by commas; none when the setting is not set. */
export const oldSecretsKeys = z
  .string()
  .optional()
  .transform((text) => (text === undefined ? [] : text.split(",").map((part) => part.trim())))
  .pipe(z.array(secretsKey));
