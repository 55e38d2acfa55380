/** The health of the services, for monitors: counts and words of closed lists, and nothing that helps an attacker. */
import { z } from "zod";
import { PARTITION_COUNT } from "../../../machines/partition.ts";
import { repeatable } from "../operation.ts";

/** Why a service that answers cannot do its whole work. */
export const SERVICE_FAULTS = [
  /** PostgreSQL does not answer it in time, or can only be read. */
  "database_unreachable",
  /** The audit copy is behind the station log for longer than it may be. */
  "copy_late",
  /** Changes wait in the outbox for longer than they may. */
  "delivery_late",
  /** The bus has not all streams and buckets: `migrate` makes them. */
  "streams_missing",
  /** The clock of its machine is wrong; it works in the time of the bus. */
  "clock_wrong",
] as const;
export type ServiceFault = (typeof SERVICE_FAULTS)[number];

const serviceHealthSchema = z.object({
  fault: z.enum(SERVICE_FAULTS).nullable(),
  /** Whether PostgreSQL answers this service. */
  databaseReady: z.boolean(),
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

/** Of all actor hosts together, as the one that answers sees it. A host without a current lease refuses with `unavailable`. */
export const stationsHealth = repeatable(
  "stations.health",
  nothing,
  z.object({
    /** Partitions whose stations some host answers for. */
    partitionsOwned: z.int().min(0).max(PARTITION_COUNT),
    /** Whether the clock of the host that answers is wrong. */
    isClockWrong: z.boolean(),
  }),
);
