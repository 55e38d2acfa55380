/** What an operator may set about the actor host. */
import { z } from "zod";
import {
  DEFAULT_MACHINE_SETTINGS,
  INTENT_LIFETIME_BOUNDS_MS,
  LEASE_LIFETIME_BOUNDS_MS,
} from "../../machines/settings.ts";
import { parseSettings, setting, wholeNumber } from "../runtime/settings.ts";

export const stationsSettingsSchema = z
  .object({
    INTENT_LIFETIME_MS: setting(
      wholeNumber(INTENT_LIFETIME_BOUNDS_MS.min, INTENT_LIFETIME_BOUNDS_MS.max).default(
        DEFAULT_MACHINE_SETTINGS.intentLifetimeMs,
      ),
      { meaning: "The deadline of an intent whose creator names none, in milliseconds.", shared: true },
    ),
    // Two and a half heartbeats of the advised interval by default.
    DEVICE_SILENCE_MS: setting(wholeNumber(500, 3_600_000).default(DEFAULT_MACHINE_SETTINGS.deviceSilenceMs), {
      meaning: "The silence after which a device counts as offline, in milliseconds.",
      shared: true,
    }),
    STATION_LEASE_MS: setting(
      wholeNumber(1_000, LEASE_LIFETIME_BOUNDS_MS.max).default(DEFAULT_MACHINE_SETTINGS.leaseLifetimeMs),
      { meaning: "How long a cashier's lease of a station lasts without a renewal, in milliseconds.", shared: true },
    ),
    STATION_PASSIVATE_MS: setting(wholeNumber(0, 3_600_000).default(30_000), {
      meaning: "How long a station's state stays in memory after its last command, in milliseconds.",
    }),
  })
  .transform((values) => ({
    machine: {
      intentLifetimeMs: values.INTENT_LIFETIME_MS,
      deviceSilenceMs: values.DEVICE_SILENCE_MS,
      leaseLifetimeMs: values.STATION_LEASE_MS,
    },
    passivateMs: values.STATION_PASSIVATE_MS,
  }));
export type StationsSettings = z.infer<typeof stationsSettingsSchema>;

/** Throws UserError `invalid_setting`. */
export function readStationsSettings(environment: NodeJS.ProcessEnv): StationsSettings {
  return parseSettings(stationsSettingsSchema, environment);
}
