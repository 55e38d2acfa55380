/** Schemas that several endpoints use. All names on the wire are snake_case. */
import { z } from "zod";
import { AMOUNT_PATTERN } from "../../machines/currency.ts";
import { FIELD_ERROR_CODES } from "../../services/bus/field-errors.ts";
import { currencySchema as currencyOnTheBus } from "../../services/bus/messages/currency.ts";
import { dateSchema as dateOnTheBus, momentSchema as momentOnTheBus } from "../../services/bus/messages/date.ts";
import { nameSchema as nameOnTheBus } from "../../services/bus/messages/name.ts";
import { reasonSchema as reasonOnTheBus } from "../../services/bus/messages/sentence.ts";
import { ERRORS, PUBLISHED_ERROR_CODES } from "./errors.ts";

/** An id of the registry or of the settlement service. */
export const idSchema = z
  .int()
  .positive()
  .meta({ examples: [42] });

/** A moment as ISO 8601 in UTC with milliseconds. */
export const timestampSchema = z.iso.datetime().meta({ examples: ["2026-11-20T12:00:00.000Z"] });

/** A date in a request. */
export const requestDateSchema = dateOnTheBus.meta({ examples: ["2026-11-20"] });

/** A moment in a request, with any offset. */
export const requestMomentSchema = momentOnTheBus.meta({ examples: ["2026-11-20T00:00:00+01:00"] });

/** A decimal string in the contract's pattern ("Limits" 3). The pattern also permits forms that this service never writes. */
export const amountSchema = z
  .string()
  .regex(AMOUNT_PATTERN)
  .meta({
    format: "decimal",
    description:
      "Always written like 12.50, or 1250 in a currency without decimals: no sign and no missing digit. The pattern is the contract's and wider.",
    examples: ["12.50"],
  });
/** For amounts that may have more than two decimals: lines of statements and their sums. */
export const exactAmountSchema = z
  .string()
  .regex(/^-?\d+(?:\.\d+)?$/)
  .meta({ description: "With all decimals of its currency; money that came in is positive.", examples: ["12.50"] });

/** A name that a person enters. */
export const nameSchema = nameOnTheBus.meta({
  description:
    "One line of text: white space at both ends is taken off, Unicode is normalised to NFC; control characters, line ends and marks that override the direction of text are refused.",
});

/** A person's reason for a change. */
export const reasonSchema = reasonOnTheBus.meta({
  description:
    "Why, for a person who reads the audit log later: one line of text. Control characters, line ends and marks that override the direction of text are refused.",
});

/** An ISO 4217 code. */
export const currencySchema = z
  .string()
  .regex(/^[A-Z]{3}$/)
  .meta({ examples: ["EUR"] });

/** The code of an active currency, in a request. */
export const activeCurrencySchema = currencyOnTheBus.meta({ examples: ["EUR"] });

const fieldErrorSchema = z.object({
  pointer: z.string().meta({ description: "JSON pointer (RFC 6901) to the field.", examples: ["/outcome"] }),
  code: z.enum(FIELD_ERROR_CODES).meta({
    id: "FieldErrorCode",
    description: "What is wrong with the field, for programs and translations; further codes may be added.",
  }),
  limit: z.number().optional().meta({
    description:
      "How long or how large it may be at most, or must be at least: for `too_short`, `too_long`, `too_small`, `too_large` and `period_too_long`.",
  }),
  detail: z.string().meta({ description: "One sentence for a person; not stable." }),
});

/** An order that the same reference has already settled, with what a cashier needs to find it. */
const earlierOrderSchema = z.object({
  order_id: idSchema,
  order_display_number: idSchema,
  station_name: z.string(),
  amount: amountSchema,
  currency: currencySchema,
  settled_at: timestampSchema,
});

const yesOrNo = (value: boolean): string => (value ? "yes" : "no");
const ERROR_ROWS = PUBLISHED_ERROR_CODES.map((code) => {
  const { status, sentence, retryable, moneyMayHaveMoved } = ERRORS[code];
  return `| \`${code}\` | ${status} | ${yesOrNo(retryable)} | ${yesOrNo(moneyMayHaveMoved)} | ${sentence} |`;
});
/** The document explains the codes here and not in its introduction, because readers need the operations first. */
const errorCodeSchema = z.enum(PUBLISHED_ERROR_CODES).meta({
  id: "ErrorCode",
  description: [
    "A stable code for programs; the list is closed. `x-error-codes` in this document has the same table in machine-readable form.",
    "",
    "| code | status | retry safe | money may have moved | meaning |",
    "|---|---|---|---|---|",
    ...ERROR_ROWS,
  ].join("\n"),
});

/** The number of a reason why money may have moved. */
export const reasonNumberSchema = z.int().min(0);

/** The body of every error answer. */
export const errorBodySchema = z
  .object({
    code: errorCodeSchema,
    detail: z.string().meta({ description: "One sentence for a person; not stable." }),
    request_id: z.string().meta({ description: "Finds this request in the service's log." }),
    status: z
      .string()
      .optional()
      .meta({ description: "The intent's or the serving task's status, where the refusal is about one." }),
    reason: z.string().optional().meta({
      description:
        "Why a route is withdrawn, money may have moved (as `money_may_have_moved` of an intent), a webhook address refused or an issue not resolved, or who holds a lease.",
    }),
    earlier_intent_id: idSchema.optional().meta({
      description:
        "For `money_may_have_moved`: the earlier collection of the order that may have moved money, where it is still known.",
    }),
    reason_number: reasonNumberSchema.optional().meta({
      description:
        "For `money_may_have_moved`: `confirmed_reason_number` with this number confirms all reasons of the order that the station knows now.",
    }),
    earlier_order: earlierOrderSchema.optional().meta({
      description: "For `reference_already_used`: the newest order of the filial that the same reference has settled.",
    }),
    errors: z.array(fieldErrorSchema).optional().meta({ description: "For `invalid_request`: each field at fault." }),
  })
  .meta({ id: "ApiError" });
export type ErrorBody = z.infer<typeof errorBodySchema>;

/** A moment for the wire. */
export const toTimestamp = (ms: number): string => new Date(ms).toISOString();

/** A moment on the wire, or null. */
export const optionalTimestamp = (ms: number | null): string | null => (ms === null ? null : toTimestamp(ms));

/** The actor of a change. The wire has `platform` for the registry, which acts for the operator of the installation. */
export function actorJson<T extends { readonly kind: string }>(
  actor: T,
): Omit<T, "kind"> & { kind: Exclude<T["kind"], "registry"> | "platform" } {
  const kind = actor.kind === "registry" ? "platform" : (actor.kind as Exclude<T["kind"], "registry">);
  return { ...actor, kind };
}

/** The name on the wire of a field of a message. */
export function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
