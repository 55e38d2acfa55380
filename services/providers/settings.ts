/** What an operator sets about the providers service. */
import { z } from "zod";
import { oldSecretsKeys, secretsKey } from "../runtime/secrets-key.ts";
import { webAddress } from "../runtime/settings.ts";

export const providersSettingsSchema = z.object({
  /** Encrypts the secrets of provider configs. Without it nothing could be asked of a provider, so the service does not start. */
  PROVIDER_SECRETS_KEY: secretsKey,
  /** What keys of before encrypted is encrypted anew at start. */
  PROVIDER_SECRETS_OLD_KEYS: oldSecretsKeys,
  /** Where the sandbox provider answers. An owner cannot set it: the service would ask whatever address they name. */
  SANDBOX_PROVIDER_URL: webAddress("http://127.0.0.1:8490").default("http://127.0.0.1:8490"),
  /** Opens accounts at the sandbox provider; without it only accounts that are open already can be used. */
  SANDBOX_PROVIDER_INSTALLATION_KEY: secretsKey.optional(),
  /** Where providers reach this installation's gateway. */
  PROVIDER_CALLBACK_BASE_URL: webAddress("https://payments.example.com").default("http://127.0.0.1:8480"),
});
export type ProvidersSettings = z.infer<typeof providersSettingsSchema>;
