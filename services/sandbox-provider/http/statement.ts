/** The statement: what was paid, line by line, as JSON or CSV. `after` is the last line that the caller has. */
import { z } from "zod";
import type { SandboxDeps } from "../deps.ts";
import { SANDBOX_LIMITS } from "../limits.ts";
import { paymentOnWire } from "../payment-wire.ts";
import type { AccountRow } from "../sql/accounts.ts";
import { type PaymentRow, selectStatement } from "../sql/payments.ts";
import { parsed, type Reply } from "./reply.ts";

const { default: defaultLines, max } = SANDBOX_LIMITS.statementLines;
const querySchema = z.strictObject({
  after: z.coerce.number().int().min(0).default(0),
  limit: z.coerce.number().int().min(1).max(max).default(defaultLines),
});

const COLUMNS = ["line", "payment_id", "reference", "account", "amount", "currency", "paid_at"] as const;
type Line = Readonly<Record<(typeof COLUMNS)[number], string | number>>;

/** A page; the next one begins behind `next_after`, which is null on the last page. */
export async function statement(
  deps: SandboxDeps,
  account: AccountRow,
  asked: { readonly format: "json" | "csv"; readonly query: URLSearchParams },
): Promise<Reply> {
  const { after, limit } = parsed(querySchema, Object.fromEntries(asked.query));
  // One more than was asked for tells whether there are more.
  const rows = await selectStatement(deps.database, { accountId: account.account_id, after, limit: limit + 1 });
  const lines = rows.slice(0, limit).map(lineOf);
  const nextAfter = rows.length > limit ? (lines.at(-1)?.line ?? null) : null;
  if (asked.format === "json") return { status: 200, json: { lines, next_after: nextAfter } };
  return {
    status: 200,
    text: [COLUMNS.join(","), ...lines.map(csvLine)].join("\r\n").concat("\r\n"),
    headers: {
      "content-type": "text/csv; charset=utf-8",
      ...(nextAfter === null ? {} : { "x-next-after": String(nextAfter) }),
    },
  };
}

function lineOf(payment: PaymentRow): Line {
  const { payment_id, reference, account, amount, currency } = paymentOnWire(payment);
  const paidAt = payment.decided_at?.toISOString() ?? "";
  return { line: payment.statement_line ?? 0, payment_id, reference, account, amount, currency, paid_at: paidAt };
}

/** RFC 4180: a field with a comma, a quote or a line's end stands in quotes. */
function csvLine(line: Line): string {
  return COLUMNS.map((column) => {
    const field = String(line[column]);
    return /[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
  }).join(",");
}
