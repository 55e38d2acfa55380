/**
 * The operations that a process refuses while the disk is short of space. It refuses them with `storage_low` before it
 * does anything. Below the reserve it refuses operations that can wait, and only on a full disk new collections. It
 * carries out all other operations as long as the servers can store them: those that complete or end a collection,
 * those that make the system safer (kill switches, suspensions, revocations), and reads.
 */
import type { NatsConnection } from "nats";
import { type Disk, type DiskTier, isShort, UNWATCHED } from "../runtime/disk-watch.ts";
import { BUS_LIMITS } from "./limits.ts";
import type { BusRefusal } from "./refusals.ts";

type Tier = Exclude<DiskTier, "ok" | "low">;

export const WAITS: ReadonlyMap<string, Tier> = new Map<string, Tier>([
  ["registry.createOrganization", "reserve"],
  ["registry.createFilial", "reserve"],
  ["registry.createCatalogueItem", "reserve"],
  ["registry.createStation", "reserve"],
  ["registry.registerDevice", "reserve"],
  ["registry.issueEnrollmentCode", "reserve"],
  ["registry.enrollDevice", "reserve"],
  ["registry.createUser", "reserve"],
  ["registry.seedSandboxStation", "reserve"],
  ["registry.startConformanceRun", "reserve"],
  ["providers.createProviderConfig", "reserve"],
  ["providers.ensureTestConfig", "reserve"],
  ["reconciliation.prepareImport", "reserve"],
  ["robotics.createRoboticsConsumer", "reserve"],
  ["robotics.offerServingTask", "reserve"],
  ["webhooks.registerWebhookEndpoint", "reserve"],
  ["webhooks.testWebhookEndpoint", "reserve"],
  ["webhooks.redeliverWebhook", "reserve"],
  ["webhooks.resendWebhookDelivery", "reserve"],
  ["settlement.openOrder", "full"],
]);

const disks = new WeakMap<NatsConnection, Disk>();

/** Sets the disk that the process of this connection watches; called once, at the start. */
export function setDisk(nc: NatsConnection, disk: Disk): void {
  disks.set(nc, disk);
}

export function diskOf(nc: NatsConnection): Disk {
  return disks.get(nc) ?? UNWATCHED;
}

export const STORAGE_LOW = {
  code: "storage_low",
  retryAfterMs: BUS_LIMITS.storageRetryMs,
} as const satisfies BusRefusal;

/** Whether the process must refuse the operation with this subject now. */
export function mustWait(nc: NatsConnection, subject: string): boolean {
  const tier = WAITS.get(subject);
  return tier !== undefined && isShort(diskOf(nc), tier);
}
