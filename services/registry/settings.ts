/** What an operator may set about the registry. */
import { z } from "zod";
import { SECRETS_KEY_MEANING, secretsKey } from "../runtime/keyring.ts";
import { setting, webAddress } from "../runtime/settings.ts";

export const registrySettingsSchema = z.object({
  // A code has 50 bits and an IPv4 address 32, so that either can be found from a plain hash in a stolen backup by trying.
  ENROLLMENT_CODE_KEY: setting(z.string().min(16, "it must have at least 16 characters").optional(), {
    meaning:
      "Keys the hashes of enrollment codes and of the addresses at which people are known: a text of at least 16 random characters.",
    shared: true,
    secret: true,
    unset: "plain hashes",
  }),
  CERTIFICATION_SIGNING_KEY: setting(secretsKey.optional(), {
    meaning: `Signs certification artifacts and the log of them (Ed25519): ${SECRETS_KEY_MEANING}. A new one signs from then on; the public keys of before stay published.`,
    shared: true,
    secret: true,
    unset: "nothing can be certified",
  }),
  CONFORMANCE_BASE_URL: setting(webAddress("https://payments.example.com").default("http://127.0.0.1:8480"), {
    meaning: "Where the conformance suite, when an owner starts it by the API, reaches the gateway; without a path.",
    shared: true,
  }),
  GATEWAY_CERTIFICATE_FILE: setting(z.string().optional(), {
    meaning: "A certificate of CONFORMANCE_BASE_URL, trusted beside the authorities of Node.",
    unset: "none",
  }),
});
export type RegistrySettings = z.infer<typeof registrySettingsSchema>;
