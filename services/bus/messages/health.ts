/**
 * The health of the services, for monitoring: counts and codes from closed lists, without facts that help an attacker.
 */
import { z } from "zod";
import { PARTITION_COUNT } from "../../../machines/partition.ts";
import { repeatable } from "../operation.ts";

/** Why a service that answers cannot do all its work. */
export const SERVICE_FAULTS = [
  /** PostgreSQL does not answer the service in time, or is read-only. */
  "database_unreachable",
  /** The audit copy has been behind the station log for too long. */
  "copy_late",
  /** Changes have waited in the outbox for too long. */
  "delivery_late",
  /** The bus lacks streams or buckets: `migrate` creates them. */
  "streams_missing",
  /** The clock of its machine is wrong. The service uses the time of the bus. */
  "clock_wrong",
] as const;
export type ServiceFault = (typeof SERVICE_FAULTS)[number];

const serviceHealthSchema = z.object({
  fault: z.enum(SERVICE_FAULTS).nullable(),
  /** Whether PostgreSQL answers this service. */
  databaseReady: z.boolean(),
  /** Whether PostgreSQL's clock is ahead of the bus or behind it by more than `wrongClockMs`. */
  isDatabaseClockWrong: z.boolean().optional(),
});
export type ServiceHealth = z.infer<typeof serviceHealthSchema>;

const nothing = z.object({});

export const registryHealth = repeatable("registry.health", nothing, serviceHealthSchema);
export const settlementHealth = repeatable("settlement.health", nothing, serviceHealthSchema);
export const providersHealth = repeatable("providers.health", nothing, serviceHealthSchema);
export const roboticsHealth = repeatable("robotics.health", nothing, serviceHealthSchema);
export const reconciliationHealth = repeatable("reconciliation.health", nothing, serviceHealthSchema);
export const webhookSignerHealth = repeatable("webhooks.health", nothing, serviceHealthSchema);
export const auditHealth = repeatable("audit.health", nothing, serviceHealthSchema);
export const relayHealth = repeatable("relay.health", nothing, serviceHealthSchema);

/**
 * The health of all actor hosts together, as known to the host that answers. A host without a current lease refuses
 * with `unavailable`.
 */
export const stationsHealth = repeatable(
  "stations.health",
  nothing,
  z.object({
    /** The number of partitions that have an owner. */
    partitionsOwned: z.int().min(0).max(PARTITION_COUNT),
    /** Whether the clock of the host that answers is wrong. */
    isClockWrong: z.boolean(),
  }),
);
