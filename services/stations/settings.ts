/** What an operator may set about the actor host. */
import { z } from "zod";
import {
  DEFAULT_MACHINE_SETTINGS,
  INTENT_LIFETIME_BOUNDS_MS,
  LEASE_LIFETIME_BOUNDS_MS,
} from "../../machines/settings.ts";
import { parseSettings, wholeNumber } from "../runtime/settings.ts";

const schema = z
  .object({
    /** Deadline of an intent whose creator names none. */
    INTENT_LIFETIME_MS: wholeNumber(INTENT_LIFETIME_BOUNDS_MS.min, INTENT_LIFETIME_BOUNDS_MS.max).default(
      DEFAULT_MACHINE_SETTINGS.intentLifetimeMs,
    ),
    /** Silence after which a device counts as offline; two heartbeats and a half of the advised interval by default. */
    DEVICE_SILENCE_MS: wholeNumber(500, 3_600_000).default(DEFAULT_MACHINE_SETTINGS.deviceSilenceMs),
    /** How long a cashier's station lease lasts without a renewal: one hour at most. */
    STATION_LEASE_MS: wholeNumber(1_000, LEASE_LIFETIME_BOUNDS_MS.max).default(
      DEFAULT_MACHINE_SETTINGS.leaseLifetimeMs,
    ),
    /** How long a station's state stays in memory after its last command; its deadlines are kept in any case. */
    STATION_PASSIVATE_MS: wholeNumber(0, 3_600_000).default(30_000),
  })
  .transform((values) => ({
    machine: {
      intentLifetimeMs: values.INTENT_LIFETIME_MS,
      deviceSilenceMs: values.DEVICE_SILENCE_MS,
      leaseLifetimeMs: values.STATION_LEASE_MS,
    },
    passivateMs: values.STATION_PASSIVATE_MS,
  }));
export type StationsSettings = z.infer<typeof schema>;

/** Throws UserError `invalid_setting`. */
export function readStationsSettings(environment: NodeJS.ProcessEnv): StationsSettings {
  return parseSettings(schema, environment);
}
