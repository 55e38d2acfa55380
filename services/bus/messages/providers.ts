/** Payment providers: what the actor host, the gateway and the relay ask of the providers service. Amounts are minor units. */
import { z } from "zod";
import { PROVIDER_END_REASONS } from "../../../machines/payment-intent.ts";
import { AMOUNT_MINOR_PATTERN, BOUNDS } from "../bounds.ts";
import { defineOperation } from "../operation.ts";
import { pageAfter, pageBefore } from "../page.ts";
import { actorSchema, barrierSchema, callerSchema } from "./caller.ts";

const id = z.int().positive();
const amountMinor = z.string().regex(AMOUNT_MINOR_PATTERN);
const caller = callerSchema;
/** Why, for the trail. */
const reason = z.string().optional();

/** The adapters: each speaks one kind of provider. */
export const PROVIDER_KINDS = ["sandbox", "emvco_generic"] as const;
/** Test configs serve sandbox stations, live ones all others. */
export const PROVIDER_MODES = ["test", "live"] as const;

/** The longest that an answer to `createProviderPayment` takes; whoever asks waits a little longer than this. */
export const CREATE_PAYMENT_ANSWER_MS = 8_000;

/**
 * Asks the provider for a payment and its QR payload. Asked by the actor host; idempotent by intent id, also while the
 * first question is under way. Always answers within its own deadline: a provider that is slow is `provider_timed_out`.
 */
export const createProviderPayment = defineOperation(
  "providers.payment.create",
  "repeatable",
  z.object({
    intentId: id,
    stationId: id,
    organizationId: id,
    configId: id,
    orderDisplayNumber: id,
    amountMinor,
    currency: z.string().length(BOUNDS.currencyCharacters),
    expiresAtMs: z.number(),
  }),
  z.discriminatedUnion("created", [
    z.object({ created: z.literal(true), qrPayload: z.string(), providerReference: z.string() }),
    z.object({ created: z.literal(false), reason: z.enum(PROVIDER_END_REASONS) }),
  ]),
);

/**
 * The intent has ended unpaid: the provider is told, now and, when it does not answer, again later by the providers
 * service alone. Answers as soon as the wish is durable.
 */
export const withdrawProviderPayment = defineOperation(
  "providers.payment.withdraw",
  "repeatable",
  z.object({ intentId: id }),
  z.object({}),
);

/**
 * Whether the provider's confirmation of this intent was verified and recorded before its deadline. The host asks before
 * it commits an overdue expiry. An answer with `isOver` is final: nothing recorded later counts as in time.
 */
export const findRecordedConfirmation = defineOperation(
  "providers.confirmation.find",
  "repeatable",
  z.object({ intentId: id }),
  z.object({
    /** False while the deadline has not passed by the database's clock; the host asks again then. */
    isOver: z.boolean(),
    providerReference: z.string().nullable(),
  }),
);

/**
 * Refused callbacks of one address at one config that are answered as such; more are throttled. Only these are counted,
 * once the signature was looked at: whoever sends wrong ones cannot keep the right ones of the same address out.
 */
export const CALLBACK_REFUSAL_RATE = { refusals: 20, windowMs: 60_000 } as const;
/** Why a callback was not taken: `status` 401, 429 and 413. */
export const CALLBACK_REFUSALS = ["signature_invalid", "throttled", "body_too_large"] as const;

/** The headers of a callback that an adapter may need. */
export const CALLBACK_HEADERS = ["x-provider-signature"] as const;

/** One callback as it came: nothing is decoded before the signature over the raw body holds. */
export const receiveCallback = defineOperation(
  "providers.callback.receive",
  "repeatable",
  z.object({
    configId: id,
    /** Lower-case names; only those of `CALLBACK_HEADERS` are looked at. */
    headers: z.record(z.string(), z.string()),
    bodyBase64: z.string(),
    /** For the record of a refused signature. */
    address: z.string(),
  }),
  /**
   * A taken callback: 200 and the body to answer, byte for byte; a duplicate gets the same again, whatever has happened
   * since. A refused one: 401, 413 or 429, and a body with the `code`, which whoever speaks HTTP says in its own words.
   */
  z.object({ status: z.int(), body: z.string(), retryAfterMs: z.number().optional() }),
);

/**
 * A callback whose body is beyond the bound: it was not read, so its signature was not looked at. Answered as a refused one
 * (413, or 429 when there are many), recorded and counted as such.
 */
export const refuseLargeCallback = defineOperation(
  "providers.callback.refuse_large",
  "repeatable",
  receiveCallback.request.pick({ configId: true, address: true }),
  receiveCallback.reply,
);

export const providerConfigSchema = z.object({
  configId: id,
  filialId: id,
  kind: z.enum(PROVIDER_KINDS),
  mode: z.enum(PROVIDER_MODES),
  name: z.string(),
  /** `active` configs are used; one per filial and mode. */
  status: z.enum(["active", "disabled"]),
  /** What the adapter needs and is no secret: merchant data, addresses. */
  settings: z.record(z.string(), z.unknown()),
  /** Which secrets are stored, never what they are: name and since when; two while a key is being rotated. */
  secrets: z.array(z.object({ name: z.string(), createdAtMs: z.number(), expiresAtMs: z.number().nullable() })),
  createdAtMs: z.number(),
});
export type ProviderConfig = z.infer<typeof providerConfigSchema>;
const configReply = z.object({ config: providerConfigSchema, barrier: barrierSchema });

/** Of the caller's organization, by id. Every operation here needs `organization.manage`. */
export const listProviderConfigs = defineOperation(
  "providers.config.list",
  "repeatable",
  z.object({ caller, filialId: id.optional(), ...pageAfter }),
  z.object({ configs: z.array(providerConfigSchema), hasMore: z.boolean() }),
);
/** Secrets may be given or are made; those that were made are returned this once. */
export const createProviderConfig = defineOperation(
  "providers.config.create",
  "once",
  z.object({
    caller,
    filialId: id,
    kind: z.enum(PROVIDER_KINDS),
    mode: z.enum(PROVIDER_MODES),
    name: z.string(),
    settings: z.record(z.string(), z.unknown()),
    secrets: z.record(z.string(), z.string()).optional(),
    reason,
  }),
  configReply.extend({ newSecrets: z.record(z.string(), z.string()) }),
);
export const changeProviderConfig = defineOperation(
  "providers.config.change",
  "once",
  z.object({
    caller,
    configId: id,
    name: z.string().optional(),
    settings: z.record(z.string(), z.unknown()).optional(),
    status: z.enum(["active", "disabled"]).optional(),
    reason,
  }),
  configReply,
);
/**
 * A test config of the sandbox provider for a filial that has no active test config; idempotent. Served on the bus only,
 * for whoever operates the installation.
 */
export const seedSandboxProvider = defineOperation(
  "providers.sandbox.seed",
  "repeatable",
  z.object({ organizationId: id, filialId: id }),
  z.object({ configId: id }),
);
/** A new callback secret; the old one is taken as well for `overlapMs`. The new one is returned this once. */
export const rotateProviderSecret = defineOperation(
  "providers.config.rotate",
  "once",
  z.object({
    caller,
    configId: id,
    name: z.string(),
    secret: z.string().optional(),
    overlapMs: z.int().min(0),
    reason,
  }),
  z.object({ config: providerConfigSchema, newSecrets: z.record(z.string(), z.string()) }),
);

/** Money that does not fit: each kind is a name that an operator acts on (contract, "Rules" 7). */
export const ISSUE_KINDS = [
  /** Money for a transaction that was never registered, or signed words of which nothing can be read. */
  "unmatched_money",
  "amount_mismatch",
  "currency_mismatch",
  "account_mismatch",
  /** Another payment's money, money without a name of the provider's own, or an event id that told something else before. */
  "reference_mismatch",
  /** Money after the intent was cancelled, expired or failed. */
  "late_money",
  /** A second payment for an intent that is paid, or money that has paid another order. */
  "duplicate_money",
  /** The provider's money fits the intent, and the order no longer does: the payment seam refused. */
  "settlement_refused",
] as const;

/** Why an issue cannot be resolved as it was asked: the `reason` of a `conflict`. */
export const ISSUE_CONFLICTS = [
  /** Resolved already: by somebody else, otherwise, or for another reason. */
  "issue_attributed",
  "issue_closed",
  /** An attribution of it is at the payment seam. */
  "attribution_under_way",
  /** How much the money is cannot be read from what the provider has said. */
  "amount_unknown",
  /** The provider has said different amounts, or too many accounts. */
  "amount_contradicted",
  /** The money is not what the order costs. */
  "amount_differs",
  /** The provider has given the money no reference of its own. */
  "money_unnamed",
  /** The money has paid, pays, or was closed as dealt with, by the payment itself or by another issue. */
  "money_has_paid",
  "money_attributed",
  "money_closed",
  /** The money may still settle its own collection. */
  "money_may_settle",
  "order_not_open",
  "order_being_collected",
  /** Play money and a real order, or the reverse; the account of another filial. */
  "other_mode",
  "other_filial",
] as const;

const said = z.string();
/** What of a payment was registered, or what the provider says of it. What it does not say is empty, or null. */
const paymentFacts = {
  reference: z.string(),
  providerReference: z.string(),
  account: z.string(),
  amountMinor: amountMinor.nullable(),
  currency: z.string().nullable(),
};
/** Never a secret. Which parts there are goes by how the issue came about. */
export const issueEvidenceSchema = z.object({
  /** The callback's event type, or how the provider was asked. */
  learnedFrom: z.string().optional(),
  /** What the provider asserts, as far as it can be read, and its own words. */
  asserted: z.object(paymentFacts).optional(),
  said: said.optional(),
  /** What was registered when the payment was asked for; null where the money names no payment. */
  registered: z.object({ ...paymentFacts, paidReference: z.string().nullable() }).nullish(),
  /** What the intent's station has answered to the confirmation. */
  station: z.object({ code: z.string(), status: z.string().nullable() }).optional(),
  /** What the provider has said of this money since. */
  further: z
    .array(z.looseObject({ at: z.string(), learned_from: z.string(), said, same_amount: z.boolean() }))
    .optional(),
});
export type IssueEvidence = z.infer<typeof issueEvidenceSchema>;

export const issueSchema = z.object({
  issueId: id,
  kind: z.enum(ISSUE_KINDS),
  status: z.enum(["open", "attributed", "closed"]),
  configId: id,
  stationId: id.nullable(),
  intentId: id.nullable(),
  orderId: id.nullable(),
  amountMinor: amountMinor.nullable(),
  currency: z.string().nullable(),
  providerReference: z.string(),
  evidence: issueEvidenceSchema,
  openedAtMs: z.number(),
  resolvedAtMs: z.number().nullable(),
  resolvedBy: z.int().nullable(),
  reason: z.string().nullable(),
  transactionId: id.nullable(),
});
export type Issue = z.infer<typeof issueSchema>;

/** All need `reconciliation.manage`. Lists go newest first; `beforeId` continues one. */
export const listIssues = defineOperation(
  "providers.issue.list",
  "repeatable",
  z.object({
    caller,
    status: z.enum(["open", "attributed", "closed"]).optional(),
    beforeId: id.optional(),
    limit: z.int().min(1).max(BOUNDS.listed),
  }),
  z.object({ issues: z.array(issueSchema), hasMore: z.boolean() }),
);
/**
 * The money pays this order after all, through the payment seam; a refusal of the seam leaves the issue open. Refuses with
 * `conflict` and a reason of `ISSUE_CONFLICTS` what cannot be. The same person with the same order and reason again gets
 * the same answer.
 */
export const attributeIssue = defineOperation(
  "providers.issue.attribute",
  "repeatable",
  z.object({ caller, issueId: id, orderId: id, reason: z.string() }),
  z.object({ issue: issueSchema }),
);
/**
 * Resolved outside, for example paid back; the reason stays, and the money pays nothing any more, whatever is said of it.
 * Repeated and refused as `attributeIssue`.
 */
export const closeIssue = defineOperation(
  "providers.issue.close",
  "repeatable",
  z.object({ caller, issueId: id, reason: z.string() }),
  z.object({ issue: issueSchema }),
);

export const PROVIDER_EVENT_SUBJECTS = ["provider_config", "provider_issue"] as const;

/** One entry of the trail of provider configs and issues: who did what to which, when; never a secret. */
export const providerEventSchema = z.object({
  eventId: id,
  atMs: z.number(),
  actor: actorSchema,
  action: z.string(),
  subject: z.object({ kind: z.enum(PROVIDER_EVENT_SUBJECTS), id }),
  data: z.record(z.string(), z.unknown()),
});
export type ProviderEventEntry = z.infer<typeof providerEventSchema>;

/**
 * Oldest first after `sinceId`; without it newest first, before `beforeId` if that is given. An event never appears
 * behind one that was read before. Needs `organization.manage`.
 */
export const listProviderEvents = defineOperation(
  "providers.events.list",
  "repeatable",
  z.object({ caller, ...pageAfter, ...pageBefore }),
  z.object({ events: z.array(providerEventSchema), hasMore: z.boolean() }),
);
