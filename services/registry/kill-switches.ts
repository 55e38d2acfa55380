/** Kill switches: one transaction changes the row, records who did it and why, and notifies gateways and hosts (design §3). */

import type { announceSwitches as AnnounceSwitches } from "../bus/messages/announce.ts";
import { type Barrier, OPERATOR, personActor, requirePermission } from "../bus/messages/caller.ts";
import * as killSwitches from "../bus/messages/kill-switches.ts";
import type { RequestOf } from "../bus/operation.ts";
import { firstPage } from "../bus/page.ts";
import { existing } from "../bus/refusals.ts";
import { insertOutbox, type OutboxRow, switchKey } from "../db/outbox.ts";
import type { Transaction } from "../db/pool.ts";
import { flush, type RegistryDeps, type RegistryHandler } from "./deps.ts";
import { lockDevice } from "./sql/devices.ts";
import { type RegistryEvent, recordEvent } from "./sql/events.ts";
import * as sql from "./sql/kill-switches.ts";
import { lockStation } from "./sql/stations.ts";

const killSwitchMessage = (row: sql.KillSwitchRow): killSwitches.KillSwitch => ({
  switchId: row.switch_id,
  subject: { kind: row.subject_kind, id: row.subject_id },
  isOn: row.is_on,
  reason: row.reason,
  changedBy: { kind: row.changed_by_kind, id: row.changed_by_id, name: row.changed_by_name },
  changedAtMs: row.changed_at.getTime(),
});

/** A kill switch as its bucket has it. */
const switchEntry = (row: sql.KillSwitchRow): killSwitches.SwitchEntry => ({
  key: killSwitches.switchKeyOf({ kind: row.subject_kind, id: row.subject_id }),
  isOn: row.is_on,
  revision: row.revision,
});

/** Refuses with `not_found` for another organization's station, device or provider config. */
export const setKillSwitch: RegistryHandler<typeof killSwitches.setKillSwitch> = async (deps, request) => {
  const { caller, subject, isOn, reason } = request;
  const { organizationId } = requirePermission(caller, "organization.manage");
  return await change(deps, { isOn, reason, organizationId, actor: personActor(caller) }, (tx) =>
    lockSubject(tx, organizationId, subject),
  );
};

/** A gateway calls this when the request has the platform key. */
export const setPlatformKillSwitch: RegistryHandler<typeof killSwitches.setPlatformKillSwitch> = async (
  deps,
  { by, isOn, reason },
) => {
  const actor = { ...OPERATOR, name: by };
  return await change(deps, { isOn, reason, organizationId: null, actor }, async () => ({ kind: "platform", id: 0 }));
};

export const listKillSwitches: RegistryHandler<typeof killSwitches.listKillSwitches> = async (deps, request) => {
  const { caller, sinceId, limit } = request;
  const { organizationId } = requirePermission(caller, "organization.manage");
  const rows = await sql.listKillSwitches(deps.sql, { organizationId, sinceId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(killSwitchMessage), limit);
  return { killSwitches: page, hasMore };
};

export const getKillSwitch: RegistryHandler<typeof killSwitches.getKillSwitch> = async (deps) => {
  const row = await sql.getKillSwitch(deps.sql);
  return { killSwitch: row === undefined ? null : killSwitchMessage(row) };
};

/** A page of all switches, on or off, for a bus that has lost data. The relay calls it. */
export const announceSwitches: RegistryHandler<typeof AnnounceSwitches> = async (deps, { sinceId, limit }) => {
  const rows = await sql.announceSwitches(deps.sql, { sinceId, limit: limit + 1 });
  const found = rows.map((row) => ({ id: row.switch_id, entry: switchEntry(row) }));
  const { page, hasMore } = firstPage(found, limit);
  return { entries: page, hasMore };
};

type Subject = Pick<sql.SwitchChange, "kind" | "id">;

const LOCKS = { station: lockStation, device: lockDevice, provider: sql.lockProviderConfig } as const;

/** Locks the subject, so that it exists and stays in the caller's organization until the transaction ends. */
async function lockSubject(
  tx: Transaction,
  organizationId: number,
  subject: RequestOf<typeof killSwitches.setKillSwitch>["subject"],
): Promise<Subject> {
  if (subject.kind === "organization") return { kind: "organization", id: organizationId };
  existing<unknown>(await LOCKS[subject.kind](tx, organizationId, subject.id));
  return subject;
}

interface MovedSwitch {
  readonly row: sql.KillSwitchRow;
  /** What records and publishes the change; undefined where nothing has changed. */
  readonly changed: { readonly event: RegistryEvent; readonly outboxRow: OutboxRow } | undefined;
}

async function moveSwitch(tx: Transaction, facts: sql.SwitchChange): Promise<MovedSwitch> {
  const { row, isChanged } = await sql.setKillSwitch(tx, facts);
  if (!isChanged) return { row, changed: undefined };
  const { kind, id, organizationId, actor, isOn, reason } = facts;
  const action = `${kind}_${isOn ? "frozen" : "unfrozen"}`;
  const subject = { kind: kind === "provider" ? ("provider_config" as const) : kind, id };
  const event = { organizationId, actor, action, subject, data: { reason } };
  return { row, changed: { event, outboxRow: switchPut(row) } };
}

const switchPut = (row: sql.KillSwitchRow): OutboxRow => ({
  key: switchKey(row.switch_id),
  kind: "switch_set",
  entry: switchEntry(row),
});

/** Ends a freeze of the subject, if there is one. The caller writes the event and the outbox row. */
export async function endFreeze(
  tx: Transaction,
  facts: Omit<sql.SwitchChange, "isOn">,
): Promise<MovedSwitch["changed"]> {
  if (!(await sql.isFrozen(tx, facts))) return undefined;
  return (await moveSwitch(tx, { ...facts, isOn: false })).changed;
}

async function change(
  deps: RegistryDeps,
  facts: Omit<sql.SwitchChange, "kind" | "id">,
  lock: (tx: Transaction) => Promise<Subject>,
): Promise<{ killSwitch: killSwitches.KillSwitch; barrier: Barrier }> {
  const row = await deps.sql.begin(async (tx) => {
    const { row: after, changed } = await moveSwitch(tx, { ...facts, ...(await lock(tx)) });
    if (changed === undefined) return after;
    await recordEvent(tx, changed.event);
    await insertOutbox(tx, changed.outboxRow);
    return after;
  });
  // Waits also when nothing was changed, so that a repeated request shows whether the first one is effective.
  return { killSwitch: killSwitchMessage(row), barrier: await flush(deps, switchKey(row.switch_id)) };
}
