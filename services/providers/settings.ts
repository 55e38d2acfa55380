/** What an operator sets about the providers service. */
import { z } from "zod";
import { oldSecretsKeys, SECRETS_KEY_MEANING, secretsKey } from "../runtime/keyring.ts";
import { setting, webAddress } from "../runtime/settings.ts";

export const providersSettingsSchema = z.object({
  PROVIDER_SECRETS_KEY: setting(secretsKey, {
    meaning: `Encrypts the secrets of provider configs: ${SECRETS_KEY_MEANING}.`,
    shared: true,
    secret: true,
  }),
  PROVIDER_SECRETS_OLD_KEYS: setting(oldSecretsKeys, {
    meaning:
      "Earlier values of PROVIDER_SECRETS_KEY, between commas; what they encrypted is encrypted again at the start.",
    shared: true,
    secret: true,
    unset: "none",
  }),
  // An owner cannot set it: the service would call any address that they name.
  SANDBOX_PROVIDER_URL: setting(webAddress("http://127.0.0.1:8490").default("http://127.0.0.1:8490"), {
    meaning: "Where the sandbox provider answers.",
    shared: true,
  }),
  SANDBOX_PROVIDER_INSTALLATION_KEY: setting(secretsKey.optional(), {
    meaning: `Opens accounts at the sandbox provider: ${SECRETS_KEY_MEANING}.`,
    shared: true,
    secret: true,
    unset: "only accounts that are open already can be used",
  }),
  PROVIDER_CALLBACK_BASE_URL: setting(webAddress("https://payments.example.com").default("http://127.0.0.1:8480"), {
    meaning: "Where providers reach the gateway, without a path.",
    shared: true,
  }),
});
