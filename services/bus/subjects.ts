/**
 * Every subject of the bus. The partition token is near the beginning, so that a host needs one subscription for
 * each partition that it owns, and no consumer for each station.
 */
import { partitionOf, partitionToken } from "../../machines/partition.ts";

/** Commands to a station's actor, by request and reply. */
export const stationCommandSubject = (stationId: number): string =>
  `station.cmd.${partitionToken(partitionOf(stationId))}.${stationId}`;
/** What the owner of a partition subscribes to. */
export const partitionCommandsSubject = (partition: number): string => `station.cmd.${partitionToken(partition)}.*`;

/** Heartbeats: one message per device in the LIVENESS stream, the last one kept. */
export const heartbeatSubject = (stationId: number, deviceId: number): string =>
  `station.heartbeat.${partitionToken(partitionOf(stationId))}.${stationId}.${deviceId}`;
export const HEARTBEATS_ALL = "station.heartbeat.*.*.*";
/** Where the LIVENESS stream republishes a heartbeat once it is stored; hosts follow this, never the raw subject. */
export const partitionStoredHeartbeatsSubject = (partition: number): string =>
  `station.heard.${partitionToken(partition)}.*.*`;
/** The same of one device: where a heartbeat goes that could not be stored. */
export const storedHeartbeatSubject = (stationId: number, deviceId: number): string =>
  `station.heard.${partitionToken(partitionOf(stationId))}.${stationId}.${deviceId}`;
export const partitionHeartbeatsSubject = (partition: number): string =>
  `station.heartbeat.${partitionToken(partition)}.*.*`;

/** That a companion asked for its assignment: one message per device in the LIVENESS stream, the last one kept. */
export const pollSubject = (stationId: number, deviceId: number): string =>
  `station.polled.${partitionToken(partitionOf(stationId))}.${stationId}.${deviceId}`;
export const POLLS_ALL = "station.polled.*.*.*";

/** What happened to serving tasks and robotics at a filial; one message per event. */
export const roboticsEventSubject = (filialId: number): string => `robotics.event.${filialId}`;
export const ROBOTICS_EVENTS_ALL = "robotics.event.*";

/** Issues of an organization that were opened, changed or decided; one message for several issues. */
export const issueEventSubject = (organizationId: number): string => `issues.event.${organizationId}`;
export const ISSUE_EVENTS_ALL = "issues.event.*";

/** Which owners may have webhooks to send, published to all signers; nothing depends on its arrival. */
export const WEBHOOKS_DUE = "webhooks.due";

/** The station and device ids at the end of a heartbeat's or a poll's subject. */
export function parseHeartbeatSubject(subject: string): { readonly stationId: number; readonly deviceId: number } {
  const tokens = subject.split(".");
  return { stationId: Number(tokens[3]), deviceId: Number(tokens[4]) };
}

/** The station id at the end of a log or command subject. */
export function parseStationId(subject: string): number {
  return Number(subject.slice(subject.lastIndexOf(".") + 1));
}
