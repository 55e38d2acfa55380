/** What an operator sets about the sandbox provider. */
import { z } from "zod";
import { webAddress, wholeNumber } from "../runtime/settings.ts";
import { holdsCertificate } from "../runtime/trusted-certificate.ts";

const KEY_SENTENCE = "it must be 32 random bytes in base64url (43 characters)";

const key = z
  .string(KEY_SENTENCE)
  .transform((text) => Buffer.from(text, "base64url"))
  .refine((bytes) => bytes.length === 32, KEY_SENTENCE);

export const sandboxProviderSettingsSchema = z.object({
  SANDBOX_PROVIDER_HOST: z.string().default("127.0.0.1"),
  /** 0 takes any free port. */
  SANDBOX_PROVIDER_PORT: wholeNumber(0, 65_535).default(8490),
  /** Where a guest's phone reaches it, for the QR; left out, where it listens. */
  SANDBOX_PROVIDER_PUBLIC_URL: webAddress("https://sandbox.example.com").optional(),
  /** The accounts' callback secrets are derived from it, so that they stand in no table. */
  SANDBOX_PROVIDER_KEY: key,
  /** Who has it may open accounts: the installation that this provider belongs to, and nobody else who reaches the port. */
  SANDBOX_PROVIDER_INSTALLATION_KEY: key,
  /** How long a payment takes to decide by itself. */
  SANDBOX_PROVIDER_DECIDES_AFTER_MS: wholeNumber(0, 600_000).default(1_500),
  /** The only origin that it sends callbacks to: it must not become a way to reach other addresses. */
  PROVIDER_CALLBACK_BASE_URL: webAddress("https://payments.example.com").default("http://127.0.0.1:8480"),
  /** The certificate of the gateway in PEM, trusted there beside the authorities of Node. */
  GATEWAY_CERTIFICATE_FILE: z
    .string()
    .refine(holdsCertificate, "it must name a file with a certificate in PEM")
    .optional(),
});
export type SandboxProviderSettings = z.infer<typeof sandboxProviderSettingsSchema>;
