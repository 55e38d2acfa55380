/** Checks what the parts read from the environment, each by the part's local rules, before any of them is started. */
import { type GatewaySettings, readGatewaySettings } from "../gateway/settings.ts";
import { auditSettingsSchema } from "../services/audit/settings.ts";
import { providersSettingsSchema } from "../services/providers/settings.ts";
import { registrySettingsSchema } from "../services/registry/settings.ts";
import { roboticsSettingsSchema } from "../services/robotics/settings.ts";
import { diskSettingsSchema, parseSettings, sharedSettingsSchema } from "../services/runtime/settings.ts";
import { sandboxProviderSettingsSchema } from "../services/sandbox-provider/settings.ts";
import { readStationsSettings } from "../services/stations/settings.ts";
import { readSignerSettings } from "../services/webhook-signer/settings.ts";

/** In place of a key that `npm start` makes when the operator sets none. */
const MADE_KEY = Buffer.alloc(32).toString("base64url");
/** What `npm start` sets by itself where the operator has set nothing. */
const MADE: NodeJS.ProcessEnv = {
  NATS_URL: "nats://127.0.0.1:4222",
  PROVIDER_SECRETS_KEY: MADE_KEY,
  SANDBOX_PROVIDER_KEY: MADE_KEY,
  SANDBOX_PROVIDER_INSTALLATION_KEY: MADE_KEY,
  WEBHOOK_SECRETS_KEY: MADE_KEY,
};
/** Schemas of parts that check nothing beside them. */
const SCHEMAS = [
  sharedSettingsSchema,
  diskSettingsSchema,
  registrySettingsSchema,
  auditSettingsSchema,
  providersSettingsSchema,
  roboticsSettingsSchema,
  sandboxProviderSettingsSchema,
];

/** Throws UserError `invalid_setting` for the first setting that a part would refuse. Returns what the gateway reads. */
export function checkPartSettings(environment: NodeJS.ProcessEnv): GatewaySettings {
  const set = Object.entries(environment).filter(([, value]) => value !== "");
  const complete = { ...MADE, ...Object.fromEntries(set) };
  for (const schema of SCHEMAS) parseSettings(schema, complete);
  readStationsSettings(complete);
  readSignerSettings(complete);
  return readGatewaySettings(complete);
}
