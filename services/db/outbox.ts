/**
 * Writes to the outbox: a change and its messages to the bus are in one transaction, so that none of them is stored
 * without the other (design §3). The relay delivers the messages.
 */
import type { JSONValue } from "postgres";
import type { Actor } from "../../machines/actor.ts";
import type { CredentialEntry } from "../bus/messages/caller.ts";
import type { IssueEvent } from "../bus/messages/issues.ts";
import type { SwitchEntry } from "../bus/messages/kill-switches.ts";
import type { RoboticsEvent } from "../bus/messages/robotics-events.ts";
import type { SessionEntry } from "../bus/messages/sessions.ts";
import type { RequestedCommand } from "../bus/messages/station-commands.ts";
import { currentRequestId } from "../runtime/log.ts";
import { lockInTurn } from "./lock-in-turn.ts";
import type { Transaction } from "./pool.ts";

/**
 * One row. The relay delivers rows with the same key in the order of their commits, but descriptions of a station first,
 * and rows with different keys concurrently. Hashes are SHA-256 in lower-case hex; a row never has the secret itself (I9).
 */
export type OutboxRow =
  | {
      readonly key: StationKey;
      readonly kind: "station_command";
      readonly stationId: number;
      readonly command: RequestedCommand;
      readonly actor: Actor;
    }
  | {
      readonly key: StationKey;
      readonly kind: "credential_put";
      readonly hash: string;
      readonly entry: CredentialEntry;
    }
  | { readonly key: CredentialKey; readonly kind: "credential_delete"; readonly hash: string }
  | { readonly key: SessionKey; readonly kind: "session_put"; readonly hash: string; readonly entry: SessionEntry }
  | { readonly key: SessionKey; readonly kind: "session_delete"; readonly hash: string }
  | { readonly key: SwitchKey; readonly kind: "switch_set"; readonly entry: SwitchEntry }
  | { readonly key: FilialKey; readonly kind: "robotics_event"; readonly event: RoboticsEvent }
  | { readonly key: OrganizationKey; readonly kind: "issue_event"; readonly event: IssueEvent };

/** All kinds of rows. The compiler reports a kind that is missing. */
export const OUTBOX_KINDS = Object.keys({
  station_command: true,
  credential_put: true,
  credential_delete: true,
  session_put: true,
  session_delete: true,
  switch_set: true,
  robotics_event: true,
  issue_event: true,
} satisfies Record<OutboxRow["kind"], true>);

/** A station's commands, and the credential that a device may use once the station knows the device. */
export type StationKey = `station.${number}`;
/**
 * Deletions of a device's credentials. They have a separate key, so that they do not wait for a station's actor that is
 * down.
 */
type CredentialKey = `credential.${number}`;
type SessionKey = `session.${number}`;
/** One kill switch, by its id. */
type SwitchKey = `switch.${number}`;
/** Events of a filial: the relay delivers them in the order of their commits. */
type FilialKey = `filial.${number}`;
/** Events about the issues of an organization. */
type OrganizationKey = `organization.${number}`;
export type OutboxKey = StationKey | CredentialKey | SessionKey | SwitchKey | FilialKey | OrganizationKey;

export const stationKey = (stationId: number): StationKey => `station.${stationId}`;
export const credentialKey = (deviceId: number): CredentialKey => `credential.${deviceId}`;
export const sessionKey = (userId: number): SessionKey => `session.${userId}`;
export const switchKey = (switchId: number): SwitchKey => `switch.${switchId}`;
export const filialKey = (filialId: number): FilialKey => `filial.${filialId}`;
export const organizationKey = (organizationId: number): OrganizationKey => `organization.${organizationId}`;

/** The first half of the advisory locks that order writers of one key; the second half is the key's hash. */
const OUTBOX_LOCK_CLASS = 0x0b0c;

/**
 * Writes a row and returns its id. It locks the key until the transaction ends, so that the ids of one key grow in the
 * order of the commits. Without the lock the relay could see and deliver a later id before an earlier one that is not
 * committed yet. Call this last in a transaction, after every row lock. For rows of several keys, call
 * `insertOutboxRows`.
 */
export async function insertOutbox(sql: Transaction, row: OutboxRow): Promise<number> {
  const { key, kind, ...payload } = row;
  await lockInTurn(sql, OUTBOX_LOCK_CLASS, sql`array[hashtext(${key})]`);
  const [inserted] = await sql<{ outbox_id: number }[]>`
    insert into outbox (key, kind, payload, request_id)
    values (${key}, ${kind}, ${sql.json(payload as JSONValue)}, ${currentRequestId() ?? null})
    returning outbox_id`;
  if (inserted === undefined) throw new Error("The outbox took no row.");
  return inserted.outbox_id;
}

/**
 * Writes rows of several keys. The rows of each key keep their order. All transactions lock keys in the same order, so
 * that two transactions never wait for each other.
 */
export async function insertOutboxRows(sql: Transaction, rows: readonly OutboxRow[]): Promise<void> {
  const byKey = rows.toSorted((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  for (const row of byKey) await insertOutbox(sql, row);
}
