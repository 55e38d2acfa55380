/** The report of a filial's day. The parts of each sum add up to it. */
import { z } from "zod";
import { formatExactAmount } from "../../../machines/currency.ts";
import { BOUNDS } from "../../../services/bus/bounds.ts";
import * as bus from "../../../services/bus/messages/day-report.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { queryId } from "../../http/page.ts";
import { reconciliationRoute } from "../../http/route.ts";
import {
  currencySchema,
  exactAmountSchema,
  idSchema,
  requestDateSchema,
  timestampSchema,
  toTimestamp,
} from "../../http/shared-schemas.ts";
import { modeSchema } from "../backoffice/provider-configs.ts";
import { issueKindSchema } from "./issue-json.ts";
import { dateSchema } from "./line-json.ts";

const sumSchema = z.object({ count: z.int(), amount: exactAmountSchema }).meta({ id: "DaySum" });
const totalsSchema = z
  .object({
    currency: currencySchema,
    settled: z
      .object({
        cash: sumSchema,
        attested_terminal: sumSchema,
        smart_pos: sumSchema,
        dynamic_qr: sumSchema,
        total: sumSchema,
      })
      .meta({ description: "Orders that were settled on the day. The four routes add up to the total." }),
    electronic: z.object({ matched: sumSchema, differing: sumSchema, expected: sumSchema, total: sumSchema }).meta({
      description:
        "The same orders without cash. `matched`: the order has a statement line; `differing`: it has an issue; `expected`: no statement has it yet. The three parts add up to the total.",
    }),
    statement: z
      .object({
        payments: sumSchema,
        refunds: sumSchema,
        chargebacks: sumSchema,
        fees: sumSchema,
        payouts: sumSchema,
        bank: sumSchema,
        other: sumSchema,
        total: sumSchema,
      })
      .meta({
        description:
          "Lines of the filial's accounts that were booked on the day and that change a balance. `fees` also has the fees of other lines; such a line is counted only in its own part. The parts add up to the total: the change of the balances.",
      }),
    tips: sumSchema.meta({ description: "Part of `statement.payments`." }),
    open_differences: z
      .object({
        kinds: z.array(z.object({ kind: issueKindSchema, ...sumSchema.shape })),
        total: sumSchema,
      })
      .meta({ description: "Undecided issues of the day. The kinds add up to the total." }),
  })
  .meta({ id: "DayTotals" });
const reportSchema = z
  .object({
    filial_id: idSchema,
    day: dateSchema,
    mode: modeSchema,
    time_zone: z.string(),
    from: timestampSchema,
    to: timestampSchema,
    accounts: z.array(z.object({ account_id: idSchema, name: z.string(), is_closed: z.boolean() })).meta({
      description:
        "The filial's accounts, whose lines are counted. An account that several filials share is not counted.",
    }),
    totals: z.array(totalsSchema),
    open_without_amount: z
      .array(z.object({ kind: issueKindSchema, count: z.int() }))
      .meta({ description: "Undecided issues of the day that have no amount, for example malformed rows." }),
  })
  .meta({ id: "DayReport" });

/** A time of day: `HH:MM`. */
const CLOCK = /^(?:[01]\d|2[0-3]):[0-5]\d$/;
const reportQuerySchema = z.strictObject({
  filial_id: queryId().meta({ description: "The filial whose day is reported, by its id." }),
  day: requestDateSchema.meta({ description: "The date on which the business day begins." }),
  mode: modeSchema.default("live").meta({ description: "The report never mixes payments of test and live stations." }),
  time_zone: z.string().min(1).max(BOUNDS.timeZoneCharacters).optional().meta({
    description:
      "An IANA name and no offset; the answer has its canonical name. When left out: the time zone of the filial's accounts if all have the same one, otherwise UTC.",
  }),
  starts_at: z
    .string()
    .regex(CLOCK, "Must be a time such as 05:00.")
    .default("00:00")
    .meta({ description: "When the business day begins, in the time zone. A bar's day may begin at 05:00." }),
});

const reportDay: SessionHandler<undefined, z.infer<typeof reportQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { filial_id: filialId, day, mode, time_zone: timeZone, starts_at: startsAt } = query;
  const [hours = 0, minutes = 0] = startsAt.split(":").map(Number);
  const request = { caller, filialId, day, mode, timeZone, startsAtMinute: hours * 60 + minutes };
  const report = await deps.bus.call(bus.reportDay, request);
  return ok({
    filial_id: report.filialId,
    day: report.day,
    mode: report.mode,
    time_zone: report.timeZone,
    from: toTimestamp(report.fromMs),
    to: toTimestamp(report.toMs),
    accounts: report.accounts.map(({ accountId, name, isClosed }) => ({
      account_id: accountId,
      name,
      is_closed: isClosed,
    })),
    totals: report.totals.map(totalsJson),
    open_without_amount: report.openWithoutAmount,
  });
};

type Sum = bus.DayTotals["tips"];

function totalsJson({ currency, settled, electronic, statement, tips, openDifferences }: bus.DayTotals) {
  const sum = ({ count, minor }: Sum) => ({ count, amount: formatExactAmount(BigInt(minor), currency) });
  return {
    currency,
    settled: {
      cash: sum(settled.cash),
      attested_terminal: sum(settled.attestedTerminal),
      smart_pos: sum(settled.smartPos),
      dynamic_qr: sum(settled.dynamicQr),
      total: sum(settled.total),
    },
    electronic: {
      matched: sum(electronic.matched),
      differing: sum(electronic.differing),
      expected: sum(electronic.expected),
      total: sum(electronic.total),
    },
    statement: {
      payments: sum(statement.payments),
      refunds: sum(statement.refunds),
      chargebacks: sum(statement.chargebacks),
      fees: sum(statement.fees),
      payouts: sum(statement.payouts),
      bank: sum(statement.bank),
      other: sum(statement.other),
      total: sum(statement.total),
    },
    tips: sum(tips),
    open_differences: {
      kinds: openDifferences.kinds.map(({ kind, ...of }) => ({ kind, ...sum(of) })),
      total: sum(openDifferences.total),
    },
  } satisfies z.infer<typeof totalsSchema>;
}

export const dayReportRoutes = [
  reconciliationRoute({
    method: "GET",
    path: "/api/reconciliation/v1/day-report/",
    operation: "reportDay",
    summary: "Report a filial's day",
    description:
      "For each currency: the orders that were settled by cash, terminal, smart POS and QR; the tips, fees and payouts of the statements; and the open differences.",
    query: reportQuerySchema,
    replies: { 200: { description: "The report.", schema: reportSchema } },
    errors: ["not_found"],
    handler: reportDay,
  }),
];
