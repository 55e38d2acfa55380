/** Exports of lines, issues and matches: all that the filter of their list names, as CSV or JSON, made while it is sent. */
import { z } from "zod";
import { BOUNDS } from "../../../services/bus/bounds.ts";
import * as issueMessages from "../../../services/bus/messages/issues.ts";
import * as matchMessages from "../../../services/bus/messages/reconciliation-matches.ts";
import * as lineMessages from "../../../services/bus/messages/statement-lines.ts";
import type { Reply, SessionHandler } from "../../http/handler-context.ts";
import { route, session } from "../../http/route.ts";
import { type Cell, csvRow } from "./csv.ts";
import { issueJson, issueSchema } from "./issue-json.ts";
import { issuesFilterOf, issuesQuerySchema } from "./issues.ts";
import { statementLineJson, statementLineSchema } from "./line-json.ts";
import { filterOf, linesFilterShape } from "./lines.ts";
import { matchesQuerySchema, matchJson, matchSchema } from "./matches.ts";

const FORMATS = ["csv", "json"] as const;
type Format = (typeof FORMATS)[number];
const format = z
  .enum(FORMATS)
  .meta({ id: "ExportFormat" })
  .default("csv")
  .meta({
    override: { default: "csv" },
    description: "`csv` for spreadsheets, or `json`: the objects of the list, all in one array.",
  });
const withoutPage = { before_id: true, limit: true } as const;
const linesQuerySchema = z.strictObject({ ...linesFilterShape, format });
const issuesExportSchema = z.strictObject({ ...issuesQuerySchema.omit(withoutPage).shape, format });
const matchesExportSchema = z.strictObject({ ...matchesQuerySchema.omit(withoutPage).shape, format });

type Item = Readonly<Record<string, unknown>>;
/** Amounts in minor units beside those in decimals, for programs. */
type Minor = Readonly<Record<string, string | null>>;
interface Exported {
  readonly json: Item;
  readonly minor: Minor;
}

/** The name of the file that a browser stores. */
function exported(name: string, as: Format, pages: AsyncIterable<readonly Exported[]>): Reply {
  const headers = {
    "Content-Type": as === "csv" ? CSV : "application/json",
    "Content-Disposition": `attachment; filename="${name}.${as}"`,
  };
  return { status: 200, headers, stream: as === "csv" ? csvOf(name, pages) : jsonOf(pages) };
}

const CSV = "text/csv; charset=utf-8";

async function* jsonOf(pages: AsyncIterable<readonly Exported[]>): AsyncIterable<string> {
  let before = "[";
  for await (const page of pages) {
    const texts = page.map(({ json }) => JSON.stringify(json));
    if (texts.length === 0) continue;
    yield `${before}${texts.join(",\n")}`;
    before = ",\n";
  }
  yield before === "[" ? "[]\n" : "]\n";
}

async function* csvOf(name: string, pages: AsyncIterable<readonly Exported[]>): AsyncIterable<string> {
  const { columns, minor } = COLUMNS[name] as Columns;
  const head = csvRow([...columns, ...minor]);
  let isFirst = true;
  for await (const page of pages) {
    const rows = page.map((each) =>
      csvRow([
        ...columns.map((column) => cellOf(each.json[column])),
        ...minor.map((column) => each.minor[column] ?? null),
      ]),
    );
    yield `${isFirst ? head : ""}${rows.join("")}`;
    isFirst = false;
  }
}

/** What has parts is JSON in its cell. */
function cellOf(value: unknown): Cell {
  if (value === undefined || value === null) return null;
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") return value;
  return JSON.stringify(value);
}

interface Columns {
  readonly columns: readonly string[];
  readonly minor: readonly string[];
}
const COLUMNS: Readonly<Record<string, Columns>> = {
  lines: {
    columns: Object.keys(statementLineSchema.shape),
    minor: ["amount_minor", "fee_minor", "net_minor", "tip_minor"],
  },
  issues: { columns: Object.keys(issueSchema.shape), minor: ["amount_minor"] },
  matches: { columns: Object.keys(matchSchema.shape), minor: [] },
};

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
  return exported("lines", query.format, pages());
};

const exportIssues: SessionHandler<undefined, z.infer<typeof issuesExportSchema>> = (context) => {
  const { caller, deps, query } = context;
  const filter = issuesFilterOf(query);
  async function* pages(): AsyncIterable<readonly Exported[]> {
    let beforeId: number | undefined;
    for (;;) {
      const { issues, hasMore } = await deps.bus.call(issueMessages.listIssues, { caller, ...filter, beforeId, limit });
      yield issues.map((issue) => ({ json: issueJson(issue), minor: { amount_minor: minorText(issue.amountMinor) } }));
      beforeId = issues.at(-1)?.issueId;
      if (!hasMore || beforeId === undefined) return;
    }
  }
  return exported("issues", query.format, pages());
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
  return exported("matches", query.format, pages());
};

const who = session("reconciliation.manage");
const tag = "reconciliation";
const exportsPath = "/api/reconciliation/v1/exports/" as const;
const description =
  "All of it in one answer. In CSV no cell is a formula, and amounts are there in decimals and in minor units.";
const reply = (schema: z.ZodType) => ({ 200: { description: "The file.", schema: z.array(schema), textType: CSV } });

export const exportRoutes = [
  route({
    method: "GET",
    path: `${exportsPath}lines/`,
    operation: "exportLines",
    tag,
    summary: "Export the lines that a filter names",
    description,
    who,
    query: linesQuerySchema,
    replies: reply(statementLineSchema),
    errors: ["not_found"],
    handler: exportLines,
  }),
  route({
    method: "GET",
    path: `${exportsPath}issues/`,
    operation: "exportIssues",
    tag,
    summary: "Export the issues that a filter names",
    description,
    who,
    query: issuesExportSchema,
    replies: reply(issueSchema),
    errors: [],
    handler: exportIssues,
  }),
  route({
    method: "GET",
    path: `${exportsPath}matches/`,
    operation: "exportMatches",
    tag,
    summary: "Export the matches that a filter names",
    description,
    who,
    query: matchesExportSchema,
    replies: reply(matchSchema),
    errors: [],
    handler: exportMatches,
  }),
];
