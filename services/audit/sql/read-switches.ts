/** Reading which kill switches held while a payment was under way, from the registry's own trail. */
import type { ActorKind } from "../../bus/messages/caller.ts";
import type { Database } from "../../db/pool.ts";

export interface SwitchThrown {
  readonly atMs: number;
  /** `<subject>_frozen` or `<subject>_unfrozen`, as in the trail. */
  readonly action: string;
  readonly subject: { readonly kind: string; readonly id: number };
  readonly actor: { readonly kind: ActorKind; readonly id: number; readonly name: string };
  readonly reason: string;
}

interface SwitchRow {
  readonly at_ms: number;
  readonly action: string;
  readonly subject_kind: string;
  readonly subject_id: number;
  readonly actor_kind: ActorKind;
  readonly actor_id: number;
  readonly actor_name: string;
  readonly reason: string | null;
}

/**
 * What was thrown between two moments about the payment's organization, station, device and provider config, or about the
 * platform, and before that whatever still held at the first of them; oldest first, the newest `limit`. Null for `toMs` is
 * a payment that is under way.
 */
export async function selectSwitchesThrown(
  database: Database,
  key: {
    readonly organizationId: number;
    readonly stationId: number;
    readonly deviceId: number | null;
    readonly configId: number | null;
    readonly fromMs: number;
    readonly toMs: number | null;
    readonly limit: number;
  },
): Promise<SwitchThrown[]> {
  const { organizationId, stationId, deviceId, configId, fromMs, toMs, limit } = key;
  const rows = await database<SwitchRow[]>`
    with thrown as (
      select e.*, floor(extract(epoch from e.at) * 1000)::bigint as at_ms,
        lead(floor(extract(epoch from e.at) * 1000)::bigint)
          over (partition by e.subject_kind, e.subject_id order by e.event_id) as next_at_ms
      from registry_events e
      where e.action like '%frozen' and (
        e.organization_id is null and e.subject_kind = 'platform'
        or e.organization_id = ${organizationId} and (e.subject_kind, e.subject_id) in (
          ('organization', ${organizationId}::bigint), ('station', ${stationId}::bigint),
          ('device', ${deviceId}::bigint), ('provider_config', ${configId}::bigint)))
    )
    select * from (
      select event_id, at_ms, action, subject_kind, subject_id, actor_kind, actor_id, actor_name, data ->> 'reason' as reason
      from thrown
      where (at_ms >= ${fromMs} or action not like '%unfrozen' and (next_at_ms is null or next_at_ms >= ${fromMs}))
        and (${toMs}::bigint is null or at_ms <= ${toMs})
      order by event_id desc limit ${limit}) as newest
    order by event_id`;
  return rows.map((row) => ({
    atMs: row.at_ms,
    action: row.action,
    subject: { kind: row.subject_kind, id: row.subject_id },
    actor: { kind: row.actor_kind, id: row.actor_id, name: row.actor_name },
    reason: row.reason ?? "",
  }));
}
