/**
 * The subjects of the bus, except those of operations and logs. The partition token is near the beginning, so that a
 * host needs only one subscription for each partition that it owns.
 */
import { partitionOf, partitionToken } from "../../machines/partition.ts";

/** Commands to a station's actor, by request and reply. */
export const stationCommandSubject = (stationId: number): string =>
  `station.cmd.${partitionToken(partitionOf(stationId))}.${stationId}`;
/** What the owner of a partition subscribes to. */
export const partitionCommandsSubject = (partition: number): string => `station.cmd.${partitionToken(partition)}.*`;
/** The notice of a host that takes no more commands for a partition (`closed-partitions.ts`). */
export const closedPartitionSubject = (partition: number): string => `station.closed.${partitionToken(partition)}`;
export const CLOSED_PARTITIONS = "station.closed.*";

/** The heartbeats of a device. The LIVENESS stream keeps the last one. */
export const heartbeatSubject = (stationId: number, deviceId: number): string =>
  `station.heartbeat.${partitionToken(partitionOf(stationId))}.${stationId}.${deviceId}`;
export const HEARTBEATS_ALL = "station.heartbeat.*.*.*";
/**
 * The subject on which the LIVENESS stream republishes stored heartbeats. Hosts subscribe to this one, never to the raw
 * subject.
 */
export const partitionStoredHeartbeatsSubject = (partition: number): string =>
  `station.heard.${partitionToken(partition)}.*.*`;
/** The same for one device: the gateway publishes a heartbeat here when it cannot be stored. */
export const storedHeartbeatSubject = (stationId: number, deviceId: number): string =>
  `station.heard.${partitionToken(partitionOf(stationId))}.${stationId}.${deviceId}`;
export const partitionHeartbeatsSubject = (partition: number): string =>
  `station.heartbeat.${partitionToken(partition)}.*.*`;

/** A companion's requests for its assignment. The LIVENESS stream keeps the last one. */
export const pollSubject = (stationId: number, deviceId: number): string =>
  `station.polled.${partitionToken(partitionOf(stationId))}.${stationId}.${deviceId}`;
export const POLLS_ALL = "station.polled.*.*.*";

/** Events of serving tasks and robotics at a filial; one message per event. */
export const roboticsEventSubject = (filialId: number): string => `robotics.event.${filialId}`;
export const ROBOTICS_EVENTS_ALL = "robotics.event.*";

/** Events of an organization's issues; one message for several issues. */
export const issueEventSubject = (organizationId: number): string => `issues.event.${organizationId}`;
export const ISSUE_EVENTS_ALL = "issues.event.*";

/** A hint to all webhook signers which owners may have webhooks to send. It may be lost without harm. */
export const WEBHOOKS_DUE = "webhooks.due";

/** A process reports to all others to which NATS server it is connected (server-links.ts). */
export const PROCESS_HERE = "processes.here";

/** The station and device ids at the end of a heartbeat's or a poll's subject. */
export function parseHeartbeatSubject(subject: string): { readonly stationId: number; readonly deviceId: number } {
  const tokens = subject.split(".");
  return { stationId: Number(tokens[3]), deviceId: Number(tokens[4]) };
}

/** The station id at the end of a log or command subject. */
export function parseStationId(subject: string): number {
  return Number(subject.slice(subject.lastIndexOf(".") + 1));
}
