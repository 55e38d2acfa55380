/** What an operator sets about the providers service. */
import { z } from "zod";

const KEY_BYTES = 32;
const KEY_SENTENCE = `it must be ${KEY_BYTES} random bytes in base64url (43 characters)`;

/** One key: 32 bytes in base64url. */
const key = z
  .string(KEY_SENTENCE)
  .transform((text) => Buffer.from(text, "base64url"))
  .refine((bytes) => bytes.length === KEY_BYTES, KEY_SENTENCE);

export const providersSettingsSchema = z.object({
  /** Encrypts the secrets of provider configs. Without it nothing could be asked of a provider, so the service does not start. */
  PROVIDER_SECRETS_KEY: key,
  /** Keys of before, separated by commas: what they encrypted is encrypted anew at start. */
  PROVIDER_SECRETS_OLD_KEYS: z
    .string()
    .optional()
    .transform((text) => (text === undefined ? [] : text.split(",").map((part) => part.trim())))
    .pipe(z.array(key)),
  /** Where the sandbox provider answers. An owner cannot set it: the service would ask whatever address they name. */
  SANDBOX_PROVIDER_URL: z.url({ protocol: /^https?$/ }).default("http://127.0.0.1:8490"),
  /** Opens accounts at the sandbox provider; without it only accounts that are open already can be used. */
  SANDBOX_PROVIDER_INSTALLATION_KEY: key.optional(),
  /** Where providers reach this installation's gateway. */
  PROVIDER_CALLBACK_BASE_URL: z.url({ protocol: /^https?$/ }).default("http://127.0.0.1:8480"),
});
export type ProvidersSettings = z.infer<typeof providersSettingsSchema>;
