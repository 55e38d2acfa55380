/** 64 simultaneous callers that try to pay one order, by every route. */
import type { Actor } from "../../machines/actor.ts";
import { attributeIssue, listIssues } from "../../services/bus/messages/issues.ts";
import type { RequestedCommand, StationResponse } from "../../services/bus/messages/station-commands.ts";
import { RefusedError } from "../../services/bus/refusals.ts";
import { waitFor } from "../support/wait-for.ts";
import { ACCOUNT, type Filial, insist, type MoneyWorld } from "./money-world.ts";
import type { Acknowledged } from "./people.ts";
import { type Assertion, Scheme } from "./scheme.ts";

export const AMOUNT_MINOR = 1_250;

let keys = 0;
export interface Scene {
  readonly world: MoneyWorld;
  readonly filial: Filial;
  readonly scheme: Scheme;
  readonly acknowledged: Acknowledged[];
  readonly orderId: number;
  readonly intentId: number;
  readonly right: Assertion;
  readonly strays: readonly number[];
}

async function act(
  { world, filial, acknowledged }: Pick<Scene, "world" | "filial" | "acknowledged">,
  command: RequestedCommand,
): Promise<StationResponse> {
  const [{ userId: id, name }] = filial.cashiers;
  const actor: Actor = { kind: "cashier", id, name };
  const request = { commandId: `at-once:${(keys += 1)}`, actor, command };
  const response = await world.command(filial.stationId, request);
  acknowledged.push({ request, response });
  return response;
}

/** Opens a filial with one order, its QR collection, and an unregistered payment of the same amount. */
export async function openScene(world: MoneyWorld, nth: number): Promise<Scene> {
  const scheme = new Scheme(world);
  const filial = await world.openFilial({ currency: "EUR", amountsMinor: [AMOUNT_MINOR] });
  const { configId, currency, secret } = filial;
  const orderId = filial.orders[0]?.orderId ?? 0;
  const acknowledged: Acknowledged[] = [];
  const { reply } = await act({ world, filial, acknowledged }, { type: "intent_create", route: "dynamic_qr", orderId });
  if (!reply.ok || reply.type !== "intent") throw new Error(`No collection: ${JSON.stringify(reply)}`);
  const { intentId } = reply;
  await waitFor("the QR", () => world.log.commitsOf(filial.stationId).at(-1)?.active?.status === "presented");
  const [payment] = await world.database<[{ reference: string }]>`
    select reference from provider_payments where intent_id = ${intentId}`;
  const money = { configId, account: ACCOUNT, amountMinor: AMOUNT_MINOR, currency };
  const right = { ...money, transactionId: `R${nth}`, reference: payment.reference };
  for (const stray of [1, 2]) {
    const unregistered = { ...money, transactionId: `S${nth}-${stray}`, reference: `UNKNOWN-${nth}-${stray}` };
    await scheme.pay(secret, unregistered, { id: `stray-${nth}-${stray}` });
  }
  const { issues } = await world.ask(listIssues, { caller: filial.operator, limit: 10 });
  return {
    world,
    filial,
    scheme,
    acknowledged,
    orderId,
    intentId,
    right,
    strays: issues.map(({ issueId }) => issueId),
  };
}

/** Makes a second collection, in cash, if the first one allows it. The cashier confirms that money may have moved. */
async function collectInCash(scene: Scene): Promise<void> {
  const { orderId } = scene;
  const command = { type: "intent_create", route: "cash", orderId, confirmsMoneyMayHaveMoved: true } as const;
  const { reply } = await act(scene, command);
  if (reply.ok && reply.type === "intent")
    await act(scene, {
      type: "intent_attest",
      intentId: reply.intentId,
      confirmsMoneyMayHaveMoved: true,
    });
}

async function attribute({ world, filial, orderId }: Scene, issueId: number): Promise<void> {
  const request = { caller: filial.operator, issueId, orderId, reason: "the guest has a receipt" };
  await insist(() => world.ask(attributeIssue, request)).catch((error: unknown) => {
    if (!(error instanceof RefusedError)) throw error;
  });
}

export function callersOf(scene: Scene, nth: number): readonly (() => Promise<unknown>)[] {
  const { filial, scheme, intentId, right, strays } = scene;
  const { secret } = filial;
  const times = (count: number, caller: (which: number) => Promise<unknown>): (() => Promise<unknown>)[] =>
    Array.from({ length: count }, (_, which) => () => caller(which));
  return [
    ...times(16, () => scheme.pay(secret, right, { id: `right-${nth}` })),
    ...times(8, (which) => scheme.pay(secret, right, { id: `right-${nth}-${which}` })),
    ...times(4, (which) =>
      scheme.pay(
        secret,
        { ...right, transactionId: `${right.transactionId}-${which}` },
        { id: `other-${nth}-${which}` },
      ),
    ),
    ...times(8, () => act(scene, { type: "intent_attest", intentId })),
    ...times(8, () => act(scene, { type: "intent_cancel", intentId })),
    ...times(12, () => collectInCash(scene)),
    ...times(8, (which) => attribute(scene, strays[which % strays.length] ?? 0)),
  ];
}
