import { requirePermission } from "../../bus/access.ts";
import type { listIssues } from "../../bus/messages/issues.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { firstPage } from "../../bus/page.ts";
import type { ProvidersDeps } from "../deps.ts";

import { selectIssues } from "../sql/issues.ts";
import { issueOnWire } from "./issue-wire.ts";

/** Newest first. Refuses with `permission_denied`. */
export async function list(
  deps: ProvidersDeps,
  { caller, status, beforeId, limit }: RequestOf<typeof listIssues>,
): Promise<ReplyOf<typeof listIssues>> {
  requirePermission(caller, "reconciliation.manage");
  const { organizationId } = caller;
  // One more than was asked for tells whether there are more.
  const rows = await selectIssues(deps.database, { organizationId, status, beforeId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(issueOnWire), limit);
  return { issues: page, hasMore };
}
