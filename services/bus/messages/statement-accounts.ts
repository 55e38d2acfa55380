/**
 * The accounts at providers and banks whose statements operators import. Each operation needs `reconciliation.manage`.
 */
import { z } from "zod";
import { once, repeatable } from "../operation.ts";
import { pageAfter } from "../page.ts";
import { callerSchema as caller } from "./caller.ts";
import { dateSchema } from "./date.ts";
import { nameSchema } from "./name.ts";
import { PROVIDER_MODES } from "./provider-configs.ts";

const id = z.int().positive();

/** By their contracts, providers settle at the latest some weeks after the payment. */
export const SETTLEMENT_DELAY_DAYS = { min: 0, max: 90 } as const;
const settlementDelayDays = z.int().min(SETTLEMENT_DELAY_DAYS.min).max(SETTLEMENT_DELAY_DAYS.max);
const currency = z.string().regex(/^[A-Z]{3}$/);

export const statementAccountSchema = z.object({
  accountId: id,
  /** Null where several filials share the account. */
  filialId: id.nullable(),
  /** The provider or bank of the account: `sumup`, `adyen`, a bank's name. */
  provider: z.string(),
  /** The provider's id of the account: a merchant account, an IBAN. */
  reference: z.string(),
  name: z.string(),
  /** Null where the account has several. */
  currency: z.string().nullable(),
  mode: z.enum(PROVIDER_MODES),
  /** The provider config whose QR payments arrive in the account. */
  configId: id.nullable(),
  /** How many days after a payment its statement line may come. After that the line counts as missing. */
  settlementDelayDays,
  /** The time zone of the statement's local times: an IANA name. */
  timeZone: z.string().nullable(),
  /** The last day that its statements cover, `YYYY-MM-DD`. Null while the account is used. */
  lastDay: z.string().nullable(),
  createdAtMs: z.number(),
});
export type StatementAccount = z.infer<typeof statementAccountSchema>;
const accountReply = z.object({ account: statementAccountSchema });

/** The accounts of the caller's organization, by id. */
export const listStatementAccounts = repeatable(
  "reconciliation.listStatementAccounts",
  z.object({ caller, ...pageAfter }),
  z.object({ accounts: z.array(statementAccountSchema), hasMore: z.boolean() }),
);
export const getStatementAccount = repeatable(
  "reconciliation.getStatementAccount",
  z.object({ caller, accountId: id }),
  accountReply,
);
/** A field that is left out is null, or has the database's default. */
export const createStatementAccount = once(
  "reconciliation.createStatementAccount",
  z.object({
    caller,
    filialId: id.optional(),
    provider: nameSchema,
    reference: nameSchema,
    name: nameSchema,
    currency: currency.optional(),
    mode: z.enum(PROVIDER_MODES),
    configId: id.optional(),
    settlementDelayDays: settlementDelayDays.optional(),
    timeZone: z.string().optional(),
  }),
  accountReply,
);
/**
 * The fields that identify the account cannot change. Currency and time zone are parts of its lines, so they cannot
 * change after an import.
 */
export const changeStatementAccount = once(
  "reconciliation.changeStatementAccount",
  z.object({
    caller,
    accountId: id,
    name: nameSchema.optional(),
    filialId: id.nullable().optional(),
    currency: currency.nullable().optional(),
    settlementDelayDays: settlementDelayDays.optional(),
    timeZone: z.string().nullable().optional(),
    lastDay: dateSchema.nullable().optional(),
  }),
  accountReply,
);
