/** Settings that hold keys of a `Keyring` (services/runtime/keyring.ts). */
import { z } from "zod";

const KEY_BYTES = 32;
/** What such a key is, for the explanation of a setting. */
export const SECRETS_KEY_MEANING = `${KEY_BYTES} random bytes in base64url`;
const KEY_SENTENCE = `it must be ${SECRETS_KEY_MEANING} (43 characters)`;

/** One key: 32 bytes in base64url. */
export const secretsKey = z
  .string(KEY_SENTENCE)
  .transform((text) => Buffer.from(text, "base64url"))
  .refine((bytes) => bytes.length === KEY_BYTES, KEY_SENTENCE);

/** Keys of before, separated by commas; none when it is not set. */
export const oldSecretsKeys = z
  .string()
  .optional()
  .transform((text) => (text === undefined ? [] : text.split(",").map((part) => part.trim())))
  .pipe(z.array(secretsKey));
