/** The health of the services, for monitors: counts and words of closed lists, and nothing that helps an attacker. */
import { z } from "zod";
import { PARTITION_COUNT } from "../../../machines/partition.ts";
import { defineOperation } from "../operation.ts";

/** Why a service that answers cannot do its whole work. */
export const SERVICE_FAULTS = [
  /** PostgreSQL does not answer it in time. */
  "database_unreachable",
  /** The audit copy is behind the station log for longer than it may be. */
  "copy_late",
  /** Changes wait in the outbox for longer than they may. */
  "delivery_late",
  /** The clock of its machine is wrong; it works in the time of the bus. */
  "clock_wrong",
] as const;
export type ServiceFault = (typeof SERVICE_FAULTS)[number];

export const serviceHealthSchema = z.object({
  fault: z.enum(SERVICE_FAULTS).nullable(),
  /** Whether PostgreSQL answers this service. */
  databaseReady: z.boolean(),
});
export type ServiceHealth = z.infer<typeof serviceHealthSchema>;

const nothing = z.object({});

export const registryHealth = defineOperation("registry.health", "repeatable", nothing, serviceHealthSchema);
export const settlementHealth = defineOperation("settlement.health", "repeatable", nothing, serviceHealthSchema);
export const providersHealth = defineOperation("providers.health", "repeatable", nothing, serviceHealthSchema);
export const roboticsHealth = defineOperation("robotics.health", "repeatable", nothing, serviceHealthSchema);
export const reconciliationHealth = defineOperation(
  "reconciliation.health",
  "repeatable",
  nothing,
  serviceHealthSchema,
);
export const webhookSignerHealth = defineOperation("webhooks.health", "repeatable", nothing, serviceHealthSchema);
export const auditHealth = defineOperation("audit.health", "repeatable", nothing, serviceHealthSchema);
export const relayHealth = defineOperation("relay.health", "repeatable", nothing, serviceHealthSchema);

/** Of all actor hosts together, as the one that answers sees it. A host without a current lease refuses with `unavailable`. */
export const stationsHealth = defineOperation(
  "stations.health",
  "repeatable",
  nothing,
  z.object({
    /** Partitions whose stations some host answers for. */
    partitionsOwned: z.int().min(0).max(PARTITION_COUNT),
    /** Whether the clock of the host that answers is wrong. */
    isClockWrong: z.boolean(),
  }),
);
