/**
 * The writing side of the outbox: a change and its messages to the bus are one transaction, so that nothing is lost and
 * nothing is half done (design §3). The relay delivers them.
 */
import type { JSONValue } from "postgres";
import type { Actor } from "../../machines/actor.ts";
import type { CredentialEntry } from "../bus/messages/caller.ts";
import type { IssueEvent } from "../bus/messages/issues.ts";
import type { SwitchEntry } from "../bus/messages/kill-switches.ts";
import type { RoboticsEvent } from "../bus/messages/robotics-events.ts";
import type { SessionEntry } from "../bus/messages/sessions.ts";
import type { RequestedCommand } from "../bus/messages/station-commands.ts";
import { lockInTurn } from "./lock-in-turn.ts";
import type { Transaction } from "./pool.ts";

/**
 * One row. Rows with the same key are delivered in the order in which their transactions committed; different keys are
 * delivered side by side. Hashes are SHA-256 in lower-case hex; a row never has the secret itself (I9).
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

/** Each kind of row; the compiler asks for a new one. */
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

/** A station's own commands, and the credential that a device may use once the station knows it. */
export type StationKey = `station.${number}`;
/** Deletions of a device's credentials: they must not wait for a station's actor that is down. */
export type CredentialKey = `credential.${number}`;
export type SessionKey = `session.${number}`;
/** One kill switch, by its id. */
export type SwitchKey = `switch.${number}`;
/** What happens at a filial: its events leave in the order in which they were committed. */
export type FilialKey = `filial.${number}`;
/** Events about the issues of an organization. */
export type OrganizationKey = `organization.${number}`;
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
 * Writes a row and returns its id. The lock on the key, held until the transaction ends, makes the ids of one key grow
 * in the order of the commits: without it a later id could be seen, and delivered, before an earlier one that is still
 * uncommitted. So this comes last in a transaction, after every row lock; rows of several keys go through
 * `insertOutboxRows`.
 */
export async function insertOutbox(sql: Transaction, row: OutboxRow): Promise<number> {
  const { key, kind, ...payload } = row;
  await lockInTurn(sql, OUTBOX_LOCK_CLASS, sql`array[hashtext(${key})]`);
  const [inserted] = await sql<{ outbox_id: number }[]>`
    insert into outbox (key, kind, payload) values (${key}, ${kind}, ${sql.json(payload as JSONValue)})
    returning outbox_id`;
  if (inserted === undefined) throw new Error("The outbox took no row.");
  return inserted.outbox_id;
}

/**
 * Writes rows of several keys. Each key's rows keep their order; the keys are taken in one order everywhere, so that two
 * transactions never wait for each other.
 */
export async function insertOutboxRows(sql: Transaction, rows: readonly OutboxRow[]): Promise<void> {
  const byKey = rows.toSorted((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  for (const row of byKey) await insertOutbox(sql, row);
}
