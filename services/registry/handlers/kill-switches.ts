/** Kill switches: one transaction changes the row, records who did it and why, and tells the bus (design §3). */
import { BOUNDS } from "../../bus/bounds.ts";
import type { Barrier } from "../../bus/messages/caller.ts";
import type {
  getKillSwitch,
  KillSwitch,
  listKillSwitches,
  setPlatformKillSwitch,
  setKillSwitch as setSwitch,
} from "../../bus/messages/kill-switches.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { firstPage } from "../../bus/page.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { insertOutbox, switchKey } from "../../db/outbox.ts";
import type { Transaction } from "../../db/pool.ts";
import { flush, switchSet } from "../announce.ts";
import type { RegistryDeps } from "../deps.ts";
import { requirePermission } from "../permissions.ts";
import { lockDevice } from "../sql/devices.ts";
import {
  findPlatformSwitch,
  type KillSwitchRow,
  listSwitchesOn,
  type SwitchChange,
  setKillSwitch,
} from "../sql/kill-switches.ts";
import { lockProviderConfig } from "../sql/provider-configs.ts";
import { OPERATOR, recordEvent, userActor } from "../sql/registry-events.ts";
import { lockStation } from "../sql/stations.ts";

type Subject = RequestOf<typeof setSwitch>["subject"];

/** Refuses with `permission_denied`, and with `not_found` for another organization's station, device or provider config. */
export async function handleSetOwnSwitch(
  deps: RegistryDeps,
  { caller, subject, isOn, reason }: RequestOf<typeof setSwitch>,
): Promise<ReplyOf<typeof setSwitch>> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  return await change(deps, { isOn, reason, organizationId, actor: userActor(caller) }, (tx) =>
    ownSubject(tx, organizationId, subject),
  );
}

/** Nobody but a gateway that was shown the platform key asks for this. */
export async function handleSetPlatformSwitch(
  deps: RegistryDeps,
  { by, isOn, reason }: RequestOf<typeof setPlatformKillSwitch>,
): Promise<ReplyOf<typeof setPlatformKillSwitch>> {
  const actor = { ...OPERATOR, name: by };
  return await change(deps, { isOn, reason, organizationId: null, actor }, async () => ({ kind: "platform", id: 0 }));
}

export async function handleListOwnSwitches(
  deps: RegistryDeps,
  { caller, sinceId = 0, limit = BOUNDS.listedUnlessAsked }: RequestOf<typeof listKillSwitches>,
): Promise<ReplyOf<typeof listKillSwitches>> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  const rows = await listSwitchesOn(deps.sql, { organizationId, sinceId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(onWire), limit);
  return { killSwitches: page, hasMore };
}

export async function handleGetPlatformSwitch(deps: RegistryDeps): Promise<ReplyOf<typeof getKillSwitch>> {
  const row = await findPlatformSwitch(deps.sql);
  return { killSwitch: row === undefined ? null : onWire(row) };
}

const LOCKS = { station: lockStation, device: lockDevice, provider: lockProviderConfig } as const;

/** Holds what is frozen, so that it is there and stays the caller's while this is done. */
async function ownSubject(
  tx: Transaction,
  organizationId: number,
  subject: Subject,
): Promise<Pick<SwitchChange, "kind" | "id">> {
  if (subject.kind === "organization") return { kind: "organization", id: organizationId };
  const lock = LOCKS[subject.kind];
  if ((await lock(tx, organizationId, subject.id)) === undefined) throw new RefusedError({ code: "not_found" });
  return subject;
}

async function change(
  deps: RegistryDeps,
  facts: Omit<SwitchChange, "kind" | "id">,
  findSubject: (tx: Transaction) => Promise<Pick<SwitchChange, "kind" | "id">>,
): Promise<{ killSwitch: KillSwitch; barrier: Barrier }> {
  const row = await deps.sql.begin(async (tx) => {
    const subject = await findSubject(tx);
    const { row: after, isChanged } = await setKillSwitch(tx, { ...facts, ...subject });
    if (!isChanged) return after;
    const { organizationId, actor, isOn, reason } = facts;
    const action = `${subject.kind}_${isOn ? "frozen" : "unfrozen"}`;
    await recordEvent(tx, { organizationId, actor, action, subject: eventSubject(subject), data: { reason } });
    await insertOutbox(tx, switchSet(after));
    return after;
  });
  // Also when nothing was changed: a repetition is sure to show what its first time has written.
  return { killSwitch: onWire(row), barrier: await flush(deps, switchKey(row.switch_id)) };
}

function eventSubject({ kind, id }: Pick<SwitchChange, "kind" | "id">) {
  return { kind: kind === "provider" ? ("provider_config" as const) : kind, id };
}

function onWire(row: KillSwitchRow): KillSwitch {
  return {
    switchId: row.switch_id,
    subject: { kind: row.subject_kind, id: row.subject_id },
    isOn: row.is_on,
    reason: row.reason,
    changedBy: { kind: row.changed_by_kind, id: row.changed_by_id, name: row.changed_by_name },
    changedAtMs: row.changed_at.getTime(),
  };
}
