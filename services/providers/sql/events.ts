/** Reads the audit log of configs and issues (services/db/provider-audit-log.ts writes it). */

import type { ActorKind } from "../../bus/messages/caller.ts";
import { type EventPage, readEvents } from "../../db/event-page.ts";
import type { Fragment, Queryable } from "../../db/pool.ts";
import type { ProviderEvent } from "../../db/provider-audit-log.ts";

export interface ProviderEventRow {
  readonly event_id: number;
  readonly at: Date;
  readonly actor_role: ActorKind;
  readonly actor_id: number;
  readonly actor_name: string;
  readonly action: string;
  readonly subject_kind: ProviderEvent["subject"]["kind"];
  readonly subject_id: number;
  readonly data: Record<string, unknown>;
}

/** The organization's events: oldest first after `sinceId`; without it newest first, before `beforeId` if that is given. */
export async function listProviderEvents(sql: Queryable, page: EventPage & { readonly organizationId: number }) {
  const where = sql`organization_id = ${page.organizationId}`;
  const select = (rows: Fragment) => sql<ProviderEventRow[]>`
    select event_id, at, actor_role, actor_id, actor_name, action, subject_kind, subject_id, data ${rows}`;
  return await readEvents(sql, { table: sql`provider_events`, where, select }, page);
}
