/** Money that does not fit, on the wire: what the provider says, what was registered, and what an operator did about it. */
import { z } from "zod";
import { ISSUE_CONFLICTS, ISSUE_KINDS } from "../../services/bus/messages/providers.ts";
import { hasMoreBefore, pageBeforeQuery } from "../http/page.ts";
import { amountSchema, currencySchema, idSchema, reasonSchema, timestampSchema } from "../http/shared-schemas.ts";
import { issueStatusSchema } from "./enums.ts";

const text = (description: string): z.ZodString => z.string().meta({ description });

const factsShape = {
  reference: text("Our reference of the payment; empty where none was said."),
  provider_reference: text("The provider's own name of the money; empty where there is none."),
  account: text("The account that the money is to go to, or is said to have gone to; empty where none was said."),
  amount: amountSchema.nullable().meta({ description: "Null where none can be read." }),
  currency: currencySchema.nullable(),
};
const saidSchema = text("The provider's own words: JSON, or the text of what could not be read.");

/** Every part is there, and null where an issue of its kind has none. */
export const issueEvidenceSchema = z
  .object({
    learned_from: text("The callback's event type, or how the provider was asked.").nullable(),
    asserted: z
      .object(factsShape)
      .nullable()
      .meta({ description: "What the provider asserts, as far as it can be read." }),
    said: saidSchema.nullable(),
    registered: z
      .object({
        ...factsShape,
        paid_reference: text("The provider's name of the money that the payment was paid with.").nullable(),
      })
      .nullable()
      .meta({
        description: "What was registered when the payment was asked for; null where the money names no payment.",
      }),
    station: z
      .object({
        code: text("An error code of the station."),
        status: text("The intent's status at that moment.").nullable(),
      })
      .nullable()
      .meta({ description: "Why the intent's station did not settle with money that fits." }),
    further: z
      .array(
        z.object({
          at: timestampSchema,
          learned_from: z.string(),
          said: saidSchema,
          same_amount: z.boolean().meta({ description: "False: another amount than the issue's was said." }),
        }),
      )
      .meta({ description: "What the provider has said of this money since, the oldest first, up to a bound." }),
  })
  .meta({ id: "IssueEvidence", description: "What was registered, beside what the provider says. Never a secret." });

const registered = {
  reference: "7Q2M4K8D1VXA9T3H6NBE5RWZ",
  provider_reference: "tx-1",
  account: "M-1",
  amount: "12.50",
  currency: "EUR",
};
/** An order of 12.50 of which the provider says that 12.40 were paid. */
const EXAMPLE = {
  issue_id: 42,
  kind: "amount_mismatch",
  status: "open",
  config_id: 1,
  station_id: 1,
  intent_id: 42,
  order_id: 42,
  amount: "12.40",
  currency: "EUR",
  provider_reference: "tx-1",
  evidence: {
    learned_from: "payment.paid",
    asserted: { ...registered, amount: "12.40" },
    said: '{"reference":"7Q2M4K8D1VXA9T3H6NBE5RWZ","transaction_id":"tx-1","merchant_id":"M-1","amount":"12.40","currency":"EUR"}',
    registered: { ...registered, provider_reference: "", paid_reference: null },
    station: null,
    further: [],
  },
  opened_at: "2026-11-20T12:00:00.000Z",
  resolved_at: null,
  resolved_by: null,
  reason: null,
  transaction_id: null,
} as const;

export const issueSchema = z
  .object({
    issue_id: idSchema,
    kind: z.enum(ISSUE_KINDS).meta({ id: "IssueKind" }),
    status: issueStatusSchema,
    config_id: idSchema,
    station_id: idSchema.nullable(),
    intent_id: idSchema
      .nullable()
      .meta({ description: "The collection that the money names; null where it names none." }),
    order_id: idSchema
      .nullable()
      .meta({ description: "The order of that collection, or the one that it was attributed to." }),
    amount: amountSchema.nullable().meta({ description: "How much money it is; null where that cannot be read." }),
    currency: currencySchema.nullable(),
    provider_reference: z.string(),
    evidence: issueEvidenceSchema,
    opened_at: timestampSchema,
    resolved_at: timestampSchema.nullable(),
    resolved_by: z.int().nullable().meta({ description: "A person's id; null when it resolved by itself." }),
    reason: z.string().nullable(),
    transaction_id: idSchema.nullable().meta({ description: "What it was attributed by, through the payment seam." }),
  })
  .meta({ id: "Issue", examples: [EXAMPLE] });
export const issuesSchema = z.object({ issues: z.array(issueSchema), has_more: hasMoreBefore });
export const issuesQuerySchema = z.strictObject({ ...pageBeforeQuery, status: issueStatusSchema.optional() });

export const attributeIssueBodySchema = z
  .strictObject({ order_id: idSchema, reason: reasonSchema })
  .meta({ id: "AttributeIssue", examples: [{ order_id: 42, reason: "The guest paid after the collection expired." }] });
export const closeIssueBodySchema = z
  .strictObject({ reason: reasonSchema })
  .meta({ id: "CloseIssue", examples: [{ reason: "Paid back by the provider on 2026-11-20." }] });

/** For the descriptions of both operations. */
export const ISSUE_CONFLICT_WORDS = `The \`reason\` of a \`conflict\` is one of ${ISSUE_CONFLICTS.map((word) => `\`${word}\``).join(", ")}. The same person with the same body again gets the same answer.`;
