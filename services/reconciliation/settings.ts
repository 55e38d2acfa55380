/** What an operator sets about the reconciliation service. */
import { z } from "zod";
import { SECRETS_KEY_MEANING, secretsKey } from "../runtime/keyring.ts";
import { setting } from "../runtime/settings.ts";

export const reconciliationSettingsSchema = z.object({
  CLOSING_SIGNING_KEY: setting(secretsKey.optional(), {
    meaning: `Signs closings of reconciliation periods (Ed25519): ${SECRETS_KEY_MEANING}. A new one signs from then on; the public keys of earlier closings stay readable.`,
    shared: true,
    secret: true,
    unset: "periods cannot be closed",
  }),
});
