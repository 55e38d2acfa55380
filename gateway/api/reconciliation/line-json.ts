/** Lines of statements on the wire. Amounts have all decimals of their currency: a provider may use more than orders do. */
import { z } from "zod";
import { formatExactAmount } from "../../../machines/currency.ts";
import * as bus from "../../../services/bus/messages/statement-lines.ts";
import { currencySchema, exactAmountSchema, idSchema } from "../../http/shared-schemas.ts";
import { malformedReasonJson, malformedReasonShape } from "./malformed-reason.ts";
import { lineKindSchema } from "./matches.ts";

export const dateSchema = z.iso.date().meta({ examples: ["2026-11-20"] });
export const positionSchema = z
  .int()
  .positive()
  .meta({
    description: "Its position in the file, from 1: in text the line of its first character, in XML the entry.",
    examples: [17],
  });
const text = (description: string): z.ZodString => z.string().meta({ description });

export const lineShape = {
  kind: lineKindSchema,
  provider_type: text("The provider's name for this kind of line."),
  amount: exactAmountSchema,
  currency: currencySchema,
  fee: exactAmountSchema.nullable().meta({ description: "How the fee changes the balance: a cost is negative." }),
  net: exactAmountSchema.nullable(),
  tip: exactAmountSchema.nullable().meta({ description: "A part of the amount, not on top of it." }),
  booked_on: dateSchema,
  value_on: dateSchema.nullable(),
  occurred_at: z.iso
    .datetime({ offset: true })
    .nullable()
    .meta({ description: "Null where the statement names no instant." }),
  provider_reference: text("The provider's id of the movement; empty where there is none."),
  payment_reference: text("The provider's id of the payment that a refund, fee or chargeback belongs to."),
  merchant_reference: text("The merchant's reference, as the provider returned it."),
  payout_reference: text("The payout or batch that contains it."),
  terminal: text("The terminal, store or device as the statement names it."),
  account: text("The account that the line names; empty when the whole file is of one account."),
  text: z.string(),
  details: z.record(z.string(), z.string()).meta({ description: "The other fields of the row, by their names." }),
};

const EXAMPLE = {
  line_id: 42,
  account_id: 3,
  kind: "payment",
  provider_type: "Verkauf",
  amount: "17.00",
  currency: "EUR",
  fee: "-0.24",
  net: "16.76",
  tip: "1.00",
  booked_on: "2026-11-20",
  value_on: null,
  occurred_at: "2026-11-20T18:04:11.000Z",
  provider_reference: "TAAA4BBB7CC",
  payment_reference: "",
  merchant_reference: "",
  payout_reference: "",
  terminal: "Bar",
  account: "",
  text: "",
  details: { Kartentyp: "VISA" },
  sources: [{ import_id: 9, position: 17 }],
  outcome: "matched",
  outcome_reason: null,
  issue_id: null,
  match_id: 5,
} as const;

export const statementLineSchema = z
  .object({
    line_id: idSchema,
    account_id: idSchema,
    ...lineShape,
    sources: z
      .array(z.object({ import_id: idSchema, position: positionSchema }))
      .meta({ description: "The files that have the line, the newest import first, up to a limit." }),
    outcome: z
      .enum(bus.LINE_OUTCOMES)
      .meta({
        id: "StatementLineOutcome",
        description:
          "`matched`: the line belongs to a payment; `differs`: it is a difference; `rejected`: it is not compared.",
      })
      .nullable()
      .meta({ description: "The result of the last run with this line; null before its first run." }),
    outcome_reason: z
      .string()
      .nullable()
      .meta({
        description: "The kind of its difference, or why it is not compared.",
        examples: ["unmatched_money"],
      }),
    issue_id: idSchema.nullable(),
    match_id: idSchema.nullable(),
  })
  .meta({ id: "StatementLine", examples: [EXAMPLE] });

type LineFields = Omit<bus.ReadLine, "position">;

export function lineFieldsJson(line: LineFields): z.infer<z.ZodObject<typeof lineShape>> {
  const { currency } = line;
  const amount = (minor: string): string => formatExactAmount(BigInt(minor), currency);
  const optional = (minor: string | null): string | null => (minor === null ? null : amount(minor));
  return {
    kind: line.kind,
    provider_type: line.providerType,
    amount: amount(line.amountMinor),
    currency,
    fee: optional(line.feeMinor),
    net: optional(line.netMinor),
    tip: optional(line.tipMinor),
    booked_on: line.bookedOn,
    value_on: line.valueOn,
    occurred_at: line.occurredAt,
    provider_reference: line.providerReference,
    payment_reference: line.paymentReference,
    merchant_reference: line.merchantReference,
    payout_reference: line.payoutReference,
    terminal: line.terminal,
    account: line.account,
    text: line.text,
    details: line.details,
  };
}

export function statementLineJson(line: bus.StatementLine): z.infer<typeof statementLineSchema> {
  return {
    line_id: line.lineId,
    account_id: line.accountId,
    ...lineFieldsJson(line),
    sources: line.sources.map(({ importId, position }) => ({ import_id: importId, position })),
    outcome: line.outcome,
    outcome_reason: line.outcomeReason,
    issue_id: line.issueId,
    match_id: line.matchId,
  };
}

export const malformedRowSchema = z.object({
  position: positionSchema,
  column: z.string().meta({ description: "The column with the error; empty when it is not in a single column." }),
  reason: z.string().meta({ description: "One sentence." }),
  ...malformedReasonShape,
  raw: z.string().meta({
    description:
      "The row as it is in the file, up to a limit. Of a row that contradicts a line: its reference, kind, type, amount in minor units and currency.",
  }),
});

export function malformedRowJson(row: bus.MalformedRow): z.infer<typeof malformedRowSchema> {
  const { position, column, reason, raw } = row;
  return { position, column, reason, ...malformedReasonJson(row), raw };
}
