/** The accounts at providers and banks whose statements an operator imports. */
import { z } from "zod";
import * as bus from "../../../services/bus/messages/statement-accounts.ts";
import { created, ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreAfter, pageAfterQuery } from "../../http/page.ts";
import { reconciliationRoute } from "../../http/route.ts";
import {
  currencySchema,
  idSchema,
  nameSchema,
  requestDateSchema,
  timestampSchema,
  toTimestamp,
} from "../../http/shared-schemas.ts";
import { modeSchema } from "../backoffice/provider-configs.ts";
import { dateSchema } from "./line-json.ts";

const { min, max } = bus.SETTLEMENT_DELAY_DAYS;
const delaySchema = z
  .int()
  .min(min)
  .max(max)
  .meta({ description: "How many days after a payment its line may come; after that it is missing." });
const timeZoneSchema = z.string().meta({
  description:
    "The time zone of the statement's local times, as an IANA name and no offset; answers have its canonical name. Without it, lines with local times have no instant.",
  examples: ["Europe/Berlin"],
});
const LAST_DAY =
  "The last day of an account that is no longer used. No statement of later days is awaited, later days have no period, and what was paid later is missing at another account. Null while the account is used.";
const providerSchema = nameSchema.meta({ description: "The provider or the bank of the account." });
const referenceSchema = nameSchema.meta({
  description: "The provider's id of the account, as in its statements: a merchant account, an IBAN.",
});
const filialSchema = idSchema.meta({ description: "The filial whose payments arrive in the account." });
const configSchema = idSchema.meta({ description: "The provider config whose QR payments arrive in the account." });

const EXAMPLE = {
  account_id: 3,
  filial_id: 1,
  provider: "sumup",
  reference: "MC4VDM6A",
  name: "SumUp of the bar",
  currency: "EUR",
  mode: "live",
  config_id: null,
  settlement_delay_days: 3,
  time_zone: "Europe/Berlin",
  last_day: null,
  created_at: "2026-11-20T12:00:00.000Z",
} as const;

const statementAccountSchema = z
  .object({
    account_id: idSchema,
    filial_id: filialSchema.nullable().meta({ description: "Null where several filials share the account." }),
    provider: z.string(),
    reference: z.string(),
    name: z.string(),
    currency: currencySchema.nullable().meta({ description: "Null where the account has several." }),
    mode: modeSchema,
    config_id: configSchema.nullable(),
    settlement_delay_days: delaySchema,
    time_zone: timeZoneSchema.nullable(),
    last_day: dateSchema.meta({ description: LAST_DAY }).nullable(),
    created_at: timestampSchema,
  })
  .meta({ id: "StatementAccount", examples: [EXAMPLE] });
const statementAccountsSchema = z.object({
  statement_accounts: z.array(statementAccountSchema),
  has_more: hasMoreAfter,
});
const statementAccountsQuerySchema = z.strictObject(pageAfterQuery);
const createStatementAccountBodySchema = z
  .strictObject({
    filial_id: filialSchema.optional(),
    provider: providerSchema,
    reference: referenceSchema,
    name: nameSchema,
    currency: currencySchema.optional(),
    mode: modeSchema,
    config_id: configSchema.optional(),
    settlement_delay_days: delaySchema.optional(),
    time_zone: timeZoneSchema.optional(),
  })
  .meta({
    id: "CreateStatementAccount",
    examples: [{ provider: "sumup", reference: "MC4VDM6A", name: "SumUp of the bar", currency: "EUR", mode: "live" }],
  });
const changeStatementAccountBodySchema = z
  .strictObject({
    name: nameSchema.optional(),
    filial_id: filialSchema.nullable().optional(),
    currency: currencySchema.nullable().optional(),
    settlement_delay_days: delaySchema.optional(),
    time_zone: timeZoneSchema.nullable().optional(),
    last_day: requestDateSchema.meta({ description: LAST_DAY }).nullable().optional(),
  })
  .meta({ id: "ChangeStatementAccount", examples: [{ settlement_delay_days: 5 }, { last_day: "2026-11-30" }] });

function statementAccountJson(account: bus.StatementAccount): z.infer<typeof statementAccountSchema> {
  return {
    account_id: account.accountId,
    filial_id: account.filialId,
    provider: account.provider,
    reference: account.reference,
    name: account.name,
    currency: account.currency,
    mode: account.mode,
    config_id: account.configId,
    settlement_delay_days: account.settlementDelayDays,
    time_zone: account.timeZone,
    last_day: account.lastDay,
    created_at: toTimestamp(account.createdAtMs),
  };
}

const listStatementAccounts: SessionHandler<undefined, z.infer<typeof statementAccountsQuerySchema>> = async (
  context,
) => {
  const { caller, deps, query } = context;
  const { since_id: sinceId, limit } = query;
  const { accounts, hasMore } = await deps.bus.call(bus.listStatementAccounts, { caller, sinceId, limit });
  return ok({ statement_accounts: accounts.map(statementAccountJson), has_more: hasMore });
};

const getStatementAccount: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const request = { caller, accountId: context.id("account_id") };
  const { account } = await deps.bus.call(bus.getStatementAccount, request);
  return ok(statementAccountJson(account));
};

/** Errors: `not_found` for another organization's filial or config, `conflict` for an account that already exists. */
const createStatementAccount: SessionHandler<z.infer<typeof createStatementAccountBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { filial_id: filialId, provider, reference, name, currency, mode, config_id: configId } = body;
  const { settlement_delay_days: settlementDelayDays, time_zone: timeZone } = body;
  const facts = { filialId, provider, reference, name, currency, mode, configId, settlementDelayDays, timeZone };
  const { account } = await deps.bus.call(bus.createStatementAccount, { caller, ...facts });
  return created(statementAccountJson(account));
};

const changeStatementAccount: SessionHandler<z.infer<typeof changeStatementAccountBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { name, filial_id: filialId, currency, settlement_delay_days: settlementDelayDays, time_zone: timeZone } = body;
  const { last_day: lastDay } = body;
  const change = { name, filialId, currency, settlementDelayDays, timeZone, lastDay };
  const request = { caller, accountId: context.id("account_id"), ...change };
  const { account } = await deps.bus.call(bus.changeStatementAccount, request);
  return ok(statementAccountJson(account));
};

const accounts = "/api/reconciliation/v1/accounts/" as const;
const account = `${accounts}{account_id}/` as const;

export const statementAccountRoutes = [
  reconciliationRoute({
    method: "GET",
    path: accounts,
    operation: "listStatementAccounts",
    summary: "List the accounts whose statements are imported",
    description: "The accounts at providers and at banks, of all filials, in live and in test mode.",
    query: statementAccountsQuerySchema,
    replies: { 200: { description: "By id.", schema: statementAccountsSchema } },
    handler: listStatementAccounts,
  }),
  reconciliationRoute({
    method: "POST",
    path: accounts,
    operation: "createStatementAccount",
    summary: "Add an account whose statements are imported",
    description: "Add each account at a provider or bank only once: a line is unique within its account.",
    body: createStatementAccountBodySchema,
    replies: { 201: { description: "The account.", schema: statementAccountSchema } },
    errors: ["not_found", "conflict"],
    handler: createStatementAccount,
  }),
  reconciliationRoute({
    method: "GET",
    path: account,
    operation: "getStatementAccount",
    summary: "Read an account",
    description: "The account with the settlement delay and the time zone that apply to its lines.",
    replies: { 200: { description: "The account.", schema: statementAccountSchema } },
    errors: ["not_found"],
    handler: getStatementAccount,
  }),
  reconciliationRoute({
    method: "PATCH",
    path: account,
    operation: "changeStatementAccount",
    summary: "Change an account",
    description:
      "Provider, reference, mode and provider config cannot change, because they identify the account. Currency and time zone decide how a line is read, so they can only be changed while the account has no imports.",
    body: changeStatementAccountBodySchema,
    replies: { 200: { description: "The account after the change.", schema: statementAccountSchema } },
    errors: ["not_found", "conflict"],
    handler: changeStatementAccount,
  }),
];
