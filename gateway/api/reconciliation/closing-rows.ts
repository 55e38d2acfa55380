/** The rows of a closing's export, in pages. All pages together are the file for `clients/verify-closing.mjs`. */
import { z } from "zod";
import * as bus from "../../../services/bus/messages/reconciliation-closings.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { pageAfterQuery } from "../../http/page.ts";
import { reconciliationRoute } from "../../http/route.ts";
import { closingJson } from "./closings.ts";

/** `head`, or the kind of an item and its key. */
const KEY = /^(?:head|line:[0-9a-f]{64}|issue:\d{1,15})$/;

const rowsSchema = z.object({
  rows: z.array(z.object({ key: z.string(), row: z.string() }).meta({ id: "ClosingRow" })),
  has_more: z.boolean().meta({
    description: "Whether there are more: ask again with the last row's `key` as `since_key`.",
  }),
});
const rowsQuerySchema = z.strictObject({
  since_key: z.string().regex(KEY, "Must be the key of a row.").optional().meta({
    description: "Only the rows after this one: the `key` of the last row of the page before.",
  }),
  limit: pageAfterQuery.limit,
});

/** Error: `not_found`. The head comes first, then the lines, then the issues. */
const listClosingRows: SessionHandler<undefined, z.infer<typeof rowsQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const closingId = context.id("closing_id");
  const { closing } = await deps.bus.call(bus.getClosing, { caller, closingId });
  const [of = "", after] = (query.since_key ?? "").split(":");
  if (of === "") {
    const { statement, signature } = closingJson(closing);
    const row = `{"statement":${statement},"signature":${JSON.stringify(signature)}}`;
    return ok({ rows: [{ key: "head", row }], has_more: closing.lines + closing.issues > 0 });
  }
  const read = async (kind: "line" | "issue", since: string | undefined) => {
    const request = { caller, closingId, of: kind, after: since, limit: query.limit };
    const { items, hasMore } = await deps.bus.call(bus.listClosingItems, request);
    return { hasMore, rows: items.map(({ key, item }) => ({ key: `${kind}:${key}`, row: `{"${kind}":${item}}` })) };
  };
  if (of !== "issue") {
    const lines = await read("line", after);
    if (lines.rows.length > 0) return ok({ rows: lines.rows, has_more: lines.hasMore || closing.issues > 0 });
  }
  const issues = await read("issue", of === "issue" ? after : undefined);
  return ok({ rows: issues.rows, has_more: issues.hasMore });
};

export const closingRowRoutes = [
  reconciliationRoute({
    method: "GET",
    path: "/api/reconciliation/v1/closings/{closing_id}/rows/",
    operation: "listClosingRows",
    summary: "Export a closing",
    description:
      "The export comes in pages, because a month may have a million lines. The `row` texts of all pages, joined with line feeds, are the file that `clients/verify-closing.mjs` verifies offline.",
    query: rowsQuerySchema,
    replies: { 200: { description: "The head, then lines by fingerprint, then issues by id.", schema: rowsSchema } },
    errors: ["not_found"],
    handler: listClosingRows,
  }),
];
