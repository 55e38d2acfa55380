/** What an operator sets about the sandbox provider. */
import { z } from "zod";
import { setting, webAddress, wholeNumber } from "../runtime/settings.ts";
import { holdsCertificate } from "../runtime/trusted-certificate.ts";

const KEY_SENTENCE = "it must be 32 random bytes in base64url (43 characters)";

const key = z
  .string(KEY_SENTENCE)
  .transform((text) => Buffer.from(text, "base64url"))
  .refine((bytes) => bytes.length === 32, KEY_SENTENCE);

export const sandboxProviderSettingsSchema = z.object({
  SANDBOX_PROVIDER_HOST: setting(z.string().default("127.0.0.1"), { meaning: "The address that it listens on." }),
  SANDBOX_PROVIDER_PORT: setting(wholeNumber(0, 65_535).default(8490), {
    meaning: "The port that it listens on; 0 takes any free port.",
  }),
  SANDBOX_PROVIDER_PUBLIC_URL: setting(webAddress("https://sandbox.example.com").optional(), {
    meaning: "Where a guest's phone reaches it, for the QR.",
    shared: true,
    unset: "where it listens",
  }),
  // The secrets are derived from it, so that no table has them.
  SANDBOX_PROVIDER_KEY: setting(key, {
    meaning: "The callback secrets of its accounts are derived from it: 32 random bytes in base64url.",
    shared: true,
    secret: true,
  }),
  SANDBOX_PROVIDER_INSTALLATION_KEY: setting(key, {
    meaning: "The caller that has it may open accounts: 32 random bytes in base64url, the same as that of `providers`.",
    shared: true,
    secret: true,
  }),
  SANDBOX_PROVIDER_DECIDES_AFTER_MS: setting(wholeNumber(0, 600_000).default(1_500), {
    meaning: "How long a payment takes to decide by itself, in milliseconds.",
    shared: true,
  }),
  // With any other origin the sandbox provider could be used to reach other addresses.
  PROVIDER_CALLBACK_BASE_URL: setting(webAddress("https://payments.example.com").default("http://127.0.0.1:8480"), {
    meaning: "The only origin that it sends callbacks to: that of the gateway.",
    shared: true,
  }),
  GATEWAY_CERTIFICATE_FILE: setting(
    z.string().refine(holdsCertificate, "it must name a file with a certificate in PEM").optional(),
    { meaning: "The certificate of the gateway in PEM, trusted there beside the authorities of Node.", unset: "none" },
  ),
});
