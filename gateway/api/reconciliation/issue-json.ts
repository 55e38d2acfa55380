/** Issues on the wire: their schemas, and the conversion from the messages of the bus. */
import { z } from "zod";
import { formatExactAmount } from "../../../machines/currency.ts";
import * as bus from "../../../services/bus/messages/issues.ts";
import {
  currencySchema,
  exactAmountSchema,
  idSchema,
  timestampSchema,
  toTimestamp,
} from "../../http/shared-schemas.ts";
import { malformedReasonJson, malformedReasonShape } from "./malformed-reason.ts";

export const issueStatusSchema = z.enum(bus.ISSUE_STATUSES).meta({
  id: "IssueStatus",
  description:
    "`open` and `assigned` wait for a decision; `attributed` and `closed` are decisions; `ended`: the cause of the issue is gone. When the cause comes back, the issue opens again.",
});
export const issueKindSchema = z.enum(bus.ISSUE_KINDS).meta({ id: "IssueKind" });
export const issueSourceSchema = z.enum(bus.ISSUE_SOURCES).meta({
  id: "IssueSource",
  description: "`provider`: a callback or a poll has found it; `statement`: a reconciliation run.",
});

const DAY_MS = 24 * 3_600_000;

const text = (description: string): z.ZodString => z.string().meta({ description });

const factsShape = {
  reference: text("The service's reference of the payment; empty where none was given."),
  provider_reference: text("The provider's reference of the payment; empty where there is none."),
  account: text(
    "The account that the payment must reach, or that it reached according to the provider; empty where none was given.",
  ),
  amount: exactAmountSchema.nullable().meta({ description: "Null when it cannot be read." }),
  currency: currencySchema.nullable(),
};
const saidSchema = text("The provider's text: JSON, or the text itself if it cannot be read.");

/** Every part is present. It is null if the kind of issue does not have it. */
const issueEvidenceSchema = z
  .object({
    learned_from: text("The callback's event type, or how the provider was polled.").nullable(),
    asserted: z
      .object(factsShape)
      .nullable()
      .meta({ description: "What the provider asserts, as far as it can be read." }),
    said: saidSchema.nullable(),
    registered: z
      .object({
        ...factsShape,
        paid_reference: text("The provider's reference of the payment that paid it.").nullable(),
      })
      .nullable()
      .meta({
        description:
          "What the service registered when it requested the payment; null when the asserted payment names no registered one.",
      }),
    station: z
      .object({
        code: text("An error code of the station."),
        status: text("The intent's status at that moment.").nullable(),
      })
      .nullable()
      .meta({ description: "Why the intent's station did not settle with a payment that fits." }),
    further: z
      .array(
        z.object({
          at: timestampSchema,
          learned_from: z.string(),
          said: saidSchema,
          same_amount: z.boolean().meta({ description: "False: the amount differs from the issue's." }),
        }),
      )
      .meta({ description: "What the provider reported about this payment later, the oldest first, up to a limit." }),
    statement: z
      .object({
        line_ids: z.array(idSchema),
        differences: z.array(
          z.object({ field: z.string(), expected: z.string().nullable(), found: z.string().nullable() }),
        ),
        facts: z.record(z.string(), z.string()),
        malformed: z
          .object(malformedReasonShape)
          .nullable()
          .meta({ description: "For a malformed row: the code of the sentence in `facts`." }),
      })
      .nullable()
      .meta({ description: "What a run has found in the lines of statements." }),
  })
  .meta({ id: "IssueEvidence", description: "What was registered, and what the provider reports. Never a secret." });

const proposalSchema = z
  .object({
    proposal_id: idSchema,
    order_id: idSchema,
    reason: z.string(),
    proposed_by: idSchema,
    proposed_by_name: z.string(),
    proposed_at: timestampSchema,
  })
  .meta({
    id: "AttributionProposal",
    description: "One person has proposed to pay this order with the payment; another person confirms or rejects that.",
  });

const EXAMPLE_FACTS = {
  reference: "7Q2M4K8D1VXA9T3H6NBE5RWZ",
  provider_reference: "tx-1",
  account: "M-1",
  amount: "12.50",
  currency: "EUR",
};
/** In the example, the provider reports 12.40 for an order of 12.50. */
const EXAMPLE = {
  issue_id: 42,
  kind: "amount_under",
  status: "open",
  source: "provider",
  account: "provider:1",
  config_id: 1,
  station_id: 1,
  intent_id: 42,
  order_id: 42,
  amount: "12.40",
  currency: "EUR",
  provider_reference: "tx-1",
  evidence: {
    learned_from: "payment.paid",
    asserted: { ...EXAMPLE_FACTS, amount: "12.40" },
    said: '{"reference":"7Q2M4K8D1VXA9T3H6NBE5RWZ","transaction_id":"tx-1","merchant_id":"M-1","amount":"12.40","currency":"EUR"}',
    registered: { ...EXAMPLE_FACTS, provider_reference: "", paid_reference: null },
    station: null,
    further: [],
    statement: null,
  },
  evidence_hash: "5d4a0c9f1f6e6a2b7c3d8e9f00112233445566778899aabbccddeeff00112233",
  assignee_id: null,
  supersedes_id: null,
  superseded_by: null,
  opened_at: "2026-11-20T12:00:00.000Z",
  last_seen_at: "2026-11-20T12:00:00.000Z",
  age_days: 0,
  resolved_at: null,
  resolved_by: null,
  reason: null,
  transaction_id: null,
  proposal: null,
} as const;

export const issueSchema = z
  .object({
    issue_id: idSchema,
    kind: issueKindSchema,
    status: issueStatusSchema,
    source: issueSourceSchema,
    account: z.string().meta({
      description: "The account of the issue: `provider:` and a config's id, or `statement:` and an account's id.",
    }),
    config_id: idSchema.nullable(),
    station_id: idSchema.nullable(),
    intent_id: idSchema
      .nullable()
      .meta({ description: "The collection that the payment names; null when it names none." }),
    order_id: idSchema
      .nullable()
      .meta({ description: "The order of that collection, or the order to which the payment was attributed." }),
    amount: exactAmountSchema
      .nullable()
      .meta({ description: "The amount, negative when the funds went out; null when it cannot be read." }),
    currency: currencySchema.nullable(),
    provider_reference: z.string(),
    evidence: issueEvidenceSchema,
    evidence_hash: z.string().meta({
      description:
        "SHA-256 in hex of amount, currency, status and type. While it does not change, a person's decision stays valid.",
    }),
    assignee_id: z.int().nullable().meta({ description: "The person who works on it." }),
    supersedes_id: idSchema.nullable().meta({ description: "The decided issue whose evidence has changed." }),
    superseded_by: idSchema
      .nullable()
      .meta({ description: "The issue that replaces this one, which has other evidence." }),
    opened_at: timestampSchema,
    last_seen_at: timestampSchema.meta({ description: "When a callback or a run last found it." }),
    age_days: z.int().meta({ description: "Whole days from its opening to its decision, or until now." }),
    resolved_at: timestampSchema.nullable(),
    resolved_by: z.int().nullable().meta({ description: "A person's id; null when the service resolved it." }),
    reason: z.string().nullable(),
    transaction_id: idSchema.nullable().meta({ description: "The transaction of this payment in the payment seam." }),
    proposal: proposalSchema.nullable(),
  })
  .meta({ id: "Issue", examples: [EXAMPLE] });

/** `nowMs` is the time of the bus: the age of an issue that is not decided grows until then. */
export function issueJson(issue: bus.Issue, nowMs: number): z.infer<typeof issueSchema> {
  const { amountMinor, currency } = issue;
  return {
    issue_id: issue.issueId,
    kind: issue.kind,
    status: issue.status,
    source: issue.source,
    account: issue.accountKey,
    config_id: issue.configId,
    station_id: issue.stationId,
    intent_id: issue.intentId,
    order_id: issue.orderId,
    amount: amountText(amountMinor, currency),
    currency,
    provider_reference: issue.providerReference,
    evidence: evidenceJson(issue.evidence),
    evidence_hash: issue.evidenceHash,
    assignee_id: issue.assigneeId,
    supersedes_id: issue.supersedesId,
    superseded_by: issue.supersededBy,
    opened_at: toTimestamp(issue.openedAtMs),
    last_seen_at: toTimestamp(issue.lastSeenAtMs),
    age_days: Math.max(0, Math.floor(((issue.resolvedAtMs ?? nowMs) - issue.openedAtMs) / DAY_MS)),
    resolved_at: issue.resolvedAtMs === null ? null : toTimestamp(issue.resolvedAtMs),
    resolved_by: issue.resolvedBy,
    reason: issue.reason,
    transaction_id: issue.transactionId,
    proposal: issue.proposal === null ? null : proposalJson(issue.proposal),
  };
}

function proposalJson(proposal: bus.Proposal): z.infer<typeof proposalSchema> {
  return {
    proposal_id: proposal.proposalId,
    order_id: proposal.orderId,
    reason: proposal.reason,
    proposed_by: proposal.proposedBy,
    proposed_by_name: proposal.proposedByName,
    proposed_at: toTimestamp(proposal.proposedAtMs),
  };
}

function evidenceJson(evidence: bus.IssueEvidence): z.infer<typeof issueEvidenceSchema> {
  const { learnedFrom, asserted, said, registered, station, further = [], statement } = evidence;
  return {
    learned_from: learnedFrom ?? null,
    asserted: asserted === undefined ? null : factsJson(asserted),
    said: said ?? null,
    registered: registered ? { ...factsJson(registered), paid_reference: registered.paidReference } : null,
    station: station ?? null,
    further: further.map(({ at, learned_from, said: words, same_amount }) => ({
      at: new Date(at).toISOString(),
      learned_from,
      said: words,
      same_amount,
    })),
    statement:
      statement === undefined
        ? null
        : {
            line_ids: statement.lineIds,
            differences: statement.differences,
            facts: statement.facts,
            malformed: statement.malformed === undefined ? null : malformedReasonJson(statement.malformed),
          },
  };
}

function factsJson({
  reference,
  providerReference,
  account,
  amountMinor,
  currency,
}: NonNullable<bus.IssueEvidence["asserted"]>) {
  return {
    reference,
    provider_reference: providerReference,
    account,
    amount: amountText(amountMinor, currency),
    currency,
  };
}

/** The amount with all decimals, because a statement may have thousandths of a dinar. */
export function amountText(amountMinor: string | null, currency: string | null): string | null {
  return amountMinor === null || currency === null ? null : formatExactAmount(BigInt(amountMinor), currency);
}
