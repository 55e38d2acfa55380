/** Exports of lines, issues and matches: all results of their list's filter, as CSV or JSON. */
import { z } from "zod";
import { BOUNDS } from "../../../services/bus/bounds.ts";
import * as issueMessages from "../../../services/bus/messages/issues.ts";
import * as matchMessages from "../../../services/bus/messages/reconciliation-matches.ts";
import * as lineMessages from "../../../services/bus/messages/statement-lines.ts";
import {
  CSV_TYPE,
  EXPORT_DESCRIPTION,
  type ExportColumns,
  type Exported,
  exportedFile,
  exportFormatSchema,
  MINOR_COLUMNS,
} from "../../http/exported-file.ts";
import type { SessionHandler } from "../../http/handler-context.ts";
import { reconciliationRoute } from "../../http/route.ts";
import { issueJson, issueSchema } from "./issue-json.ts";
import { issuesFilterOf, issuesQuerySchema } from "./issues.ts";
import { statementLineJson, statementLineSchema } from "./line-json.ts";
import { filterOf, linesFilterShape } from "./lines.ts";
import { matchesQuerySchema, matchJson, matchSchema } from "./matches.ts";

const withoutPage = { before_id: true, limit: true } as const;
const linesQuerySchema = z.strictObject({ ...linesFilterShape, format: exportFormatSchema });
const issuesExportSchema = z.strictObject({ ...issuesQuerySchema.omit(withoutPage).shape, format: exportFormatSchema });
const matchesExportSchema = z.strictObject({
  ...matchesQuerySchema.omit(withoutPage).shape,
  format: exportFormatSchema,
});

const COLUMNS = {
  lines: {
    columns: Object.keys(statementLineSchema.shape),
    minor: ["amount_minor", "fee_minor", "net_minor", "tip_minor"],
  },
  issues: { columns: Object.keys(issueSchema.shape), minor: ["amount_minor"] },
  matches: { columns: Object.keys(matchSchema.shape), minor: [] },
} satisfies Record<string, ExportColumns>;

const limit = BOUNDS.listed;

const exportLines: SessionHandler<undefined, z.infer<typeof linesQuerySchema>> = (context) => {
  const { caller, deps, query } = context;
  const wanted = { caller, accountId: query.account_id, fromDate: query.from_date, toDate: query.to_date, limit };
  const filter = filterOf(query);
  async function* pages(): AsyncIterable<readonly Exported[]> {
    let after: { readonly bookedOn: string; readonly lineId: number } | undefined;
    for (;;) {
      const { lines, hasMore } = await deps.bus.call(lineMessages.listLines, { ...wanted, ...filter, after });
      yield lines.map((line) => ({
        json: statementLineJson(line),
        minor: {
          amount_minor: line.amountMinor,
          fee_minor: line.feeMinor,
          net_minor: line.netMinor,
          tip_minor: line.tipMinor,
        },
      }));
      after = lines.at(-1);
      if (!hasMore || after === undefined) return;
      after = { bookedOn: after.bookedOn, lineId: after.lineId };
    }
  }
  return exportedFile({ name: "lines", format: query.format, columns: COLUMNS.lines, pages: pages() });
};

const exportIssues: SessionHandler<undefined, z.infer<typeof issuesExportSchema>> = (context) => {
  const { caller, deps, query } = context;
  const filter = issuesFilterOf(query);
  async function* pages(): AsyncIterable<readonly Exported[]> {
    let beforeId: number | undefined;
    for (;;) {
      const { issues, hasMore } = await deps.bus.call(issueMessages.listIssues, { caller, ...filter, beforeId, limit });
      yield issues.map((issue) => ({
        json: issueJson(issue, deps.nowMs()),
        minor: { amount_minor: minorText(issue.amountMinor) },
      }));
      beforeId = issues.at(-1)?.issueId;
      if (!hasMore || beforeId === undefined) return;
    }
  }
  return exportedFile({ name: "issues", format: query.format, columns: COLUMNS.issues, pages: pages() });
};

const minorText = (minor: string | number | null): string | null => (minor === null ? null : String(minor));

const exportMatches: SessionHandler<undefined, z.infer<typeof matchesExportSchema>> = (context) => {
  const { caller, deps, query } = context;
  const filter = { accountId: query.account_id, lineId: query.line_id, transactionId: query.transaction_id };
  async function* pages(): AsyncIterable<readonly Exported[]> {
    let beforeId: number | undefined;
    for (;;) {
      const request = { caller, ...filter, beforeId, limit };
      const { matches, hasMore } = await deps.bus.call(matchMessages.listMatches, request);
      yield matches.map((match) => ({ json: matchJson(match), minor: {} }));
      beforeId = matches.at(-1)?.matchId;
      if (!hasMore || beforeId === undefined) return;
    }
  }
  return exportedFile({ name: "matches", format: query.format, columns: COLUMNS.matches, pages: pages() });
};

const exportsPath = "/api/reconciliation/v1/exports/" as const;
const withMinor = `${EXPORT_DESCRIPTION} ${MINOR_COLUMNS}`;
const reply = (schema: z.ZodType) => ({
  200: { description: "The file.", schema: z.array(schema), textType: CSV_TYPE },
});

export const exportRoutes = [
  reconciliationRoute({
    method: "GET",
    path: `${exportsPath}lines/`,
    operation: "exportLines",
    summary: "Export the lines that match a filter",
    description: withMinor,
    query: linesQuerySchema,
    replies: reply(statementLineSchema),
    errors: ["not_found"],
    handler: exportLines,
  }),
  reconciliationRoute({
    method: "GET",
    path: `${exportsPath}issues/`,
    operation: "exportIssues",
    summary: "Export the issues that match a filter",
    description: withMinor,
    query: issuesExportSchema,
    replies: reply(issueSchema),
    handler: exportIssues,
  }),
  reconciliationRoute({
    method: "GET",
    path: `${exportsPath}matches/`,
    operation: "exportMatches",
    summary: "Export the matches that fit a filter",
    description: EXPORT_DESCRIPTION,
    query: matchesExportSchema,
    replies: reply(matchSchema),
    handler: exportMatches,
  }),
];
