/** Tasks as the owner and as their consumer read them. */

import { BOUNDS } from "../../bus/bounds.ts";
import { requirePermission } from "../../bus/messages/caller.ts";
import type { getOwnTask, getTask, listOwnTasks, listTasks } from "../../bus/messages/robotics.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { firstPage } from "../../bus/page.ts";
import { RefusedError } from "../../bus/refusals.ts";
import type { RoboticsDeps } from "../deps.ts";
import { findFilial } from "../sql/filials.ts";
import { findTask, selectConsumerTasks, selectOwnTasks } from "../sql/tasks.ts";
import { taskOnWire } from "./task-wire.ts";

type Using = Pick<RoboticsDeps, "database">;

/** Newest first; a foreign filial or consumer has none. Refuses with `permission_denied`. */
export async function listOwn(
  { database }: Using,
  request: RequestOf<typeof listOwnTasks>,
): Promise<ReplyOf<typeof listOwnTasks>> {
  const { caller, filialId, consumerId, status, beforeId, limit = BOUNDS.listedUnlessAsked } = request;
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  const wanted = { organizationId, filialId, consumerId, status, beforeId, limit: limit + 1 };
  const rows = await selectOwnTasks(database, wanted);
  const { page, hasMore } = firstPage(rows.map(taskOnWire), limit);
  return { tasks: page, hasMore };
}

/** Refuses with `permission_denied` or `not_found`. */
export async function getOwn(
  { database }: Using,
  { caller, taskId }: RequestOf<typeof getOwnTask>,
): Promise<ReplyOf<typeof getOwnTask>> {
  requirePermission(caller, "organization.manage");
  const row = await findTask(database, { organizationId: caller.organizationId, taskId });
  if (row === undefined) throw new RefusedError({ code: "not_found" });
  return { task: taskOnWire(row) };
}

export async function list(
  { database }: Using,
  { consumer, status, sinceId = 0, limit = BOUNDS.listedUnlessAsked }: RequestOf<typeof listTasks>,
): Promise<ReplyOf<typeof listTasks>> {
  const { consumerId } = consumer;
  const [filial, rows] = await Promise.all([
    findFilial(database, consumer),
    selectConsumerTasks(database, { consumerId, status, sinceId, limit: limit + 1 }),
  ]);
  const { page, hasMore } = firstPage(rows.map(taskOnWire), limit);
  return { tasks: page, hasMore, paused: filial?.is_paused ?? false };
}

/** Refuses with `not_found`, also for another consumer's task. */
export async function get(
  { database }: Using,
  { consumer, taskId }: RequestOf<typeof getTask>,
): Promise<ReplyOf<typeof getTask>> {
  const { organizationId, consumerId } = consumer;
  const row = await findTask(database, { organizationId, consumerId, taskId });
  if (row === undefined) throw new RefusedError({ code: "not_found" });
  return { task: taskOnWire(row) };
}
