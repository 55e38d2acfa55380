import type { listIssues } from "../../bus/messages/providers.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { requirePermission } from "../access.ts";
import type { ProvidersDeps } from "../deps.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import { firstPage } from "../page.ts";
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
  const issues = firstPage(rows.slice(0, limit).map(issueOnWire), PROVIDER_LIMITS.issuePageBytes);
  return { issues, hasMore: issues.length < rows.length };
}
