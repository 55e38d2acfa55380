/** Asking a provider about a payment that it was asked for before. */
import type { AskedPayment, AssertedMoney, ProviderAccess } from "../adapters/adapter.ts";
import { decideMoney, holdPayment } from "../callbacks/take-money.ts";
import type { ProvidersDeps } from "../deps.ts";
import { countIssue } from "../figures.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import { accessOf } from "../secrets/live-secrets.ts";
import type { ConfigRow } from "../sql/configs.ts";
import type { PaymentRow } from "../sql/payments.ts";

export interface AboutPayment {
  readonly payment: PaymentRow;
  readonly config: ConfigRow;
}

/** What an adapter's question needs, with the deadline of one call. */
export async function questionAbout(
  deps: ProvidersDeps,
  { payment, config }: AboutPayment,
): Promise<{ readonly access: ProviderAccess; readonly asked: AskedPayment; readonly signal: AbortSignal }> {
  return {
    access: await accessOf(deps, config),
    asked: askedPaymentOf(deps, payment),
    signal: AbortSignal.timeout(PROVIDER_LIMITS.callMs),
  };
}

export function askedPaymentOf(deps: Pick<ProvidersDeps, "callbackUrl">, payment: PaymentRow): AskedPayment {
  return {
    reference: payment.reference,
    amountMinor: payment.amount_minor,
    currency: payment.currency,
    orderDisplayNumber: payment.order_display_number,
    expiresAtMs: payment.expires_at.getTime(),
    callbackUrl: deps.callbackUrl(payment.config_id),
    providerReference: payment.provider_reference,
  };
}

/** Money that was found by asking is taken as if its callback had come; which of the two comes first does not matter. */
export async function takeFoundMoney(
  deps: ProvidersDeps,
  { payment, config }: AboutPayment,
  found: { readonly money: AssertedMoney; readonly by: string },
): Promise<string> {
  const { config_id: configId, organization_id: organizationId } = config;
  const source = { configId, organizationId, eventKey: `${found.by}:${payment.intent_id}`, learnedFrom: found.by };
  const { outcome, task, issueId } = await deps.database.begin(async (sql) => {
    const held = await holdPayment(sql, source, found.money);
    const decision = await decideMoney(sql, { source, money: found.money, mayPay: true }, held);
    return { outcome: decision.outcome, ...(await decision.write()) };
  });
  deps.log.info({ intentId: payment.intent_id, configId, outcome, issueId, by: found.by }, "money found by asking");
  countIssue(deps.figures, outcome, issueId);
  if (task !== undefined) deps.tasks.start(task);
  return outcome;
}
