/** A counter with a real station: a leased cashier, a sandbox config, and one open order of an amount with a scenario. */

import type { PaymentIntent } from "../../machines/payment-intent.ts";
import { decodeCommit } from "../../machines/station/commit.ts";
import type { StationState } from "../../machines/station/state.ts";
import * as issueMessages from "../../services/bus/messages/issues.ts";
import { getOrder, openOrder } from "../../services/bus/messages/orders.ts";
import type { RequestedCommand, StationResponse } from "../../services/bus/messages/station-commands.ts";
import type { ReplyOf } from "../../services/bus/operation.ts";
import { askStation } from "../../services/bus/station-client.ts";
import { insertOutbox, stationKey } from "../../services/db/outbox.ts";
import { MAGIC_AMOUNTS, type Scenario } from "../../services/sandbox-provider/magic-amounts.ts";
import { STATION_LOG, stationLogSubject } from "../support/one-log.ts";
import { waitFor } from "../support/wait-for.ts";
import type { Place, ProvidersWorld } from "./providers-world.ts";

export interface QrCounter {
  readonly place: Place;
  readonly configId: number;
  readonly orderId: number;
  act(command: RequestedCommand): Promise<StationResponse>;
  state(): Promise<StationState>;
  /** Begins a QR collection of the order, and returns the id of its intent. */
  collect(lifetimeMs: number): Promise<number>;
  presented(intentId: number): Promise<PaymentIntent>;
  /** Polls until the intent has ended, for at most this time. */
  ended(intentId: number, timeoutMs: number): Promise<PaymentIntent>;
  order(): Promise<ReplyOf<typeof getOrder>["order"]>;
  issues(): Promise<readonly issueMessages.Issue[]>;
}

let commands = 0;

let opening: Promise<unknown> = Promise.resolve();

/** Creates places one after the other, so that the provider answers each request in time, also under load. */
async function openPlace(world: ProvidersWorld): Promise<{ readonly place: Place; readonly configId: number }> {
  const open = async () => {
    const place = await world.openPlace();
    await putStation(world, place);
    return { place, configId: await world.addSandboxConfig(place) };
  };
  const turn = opening.then(open);
  opening = turn.catch(() => undefined);
  return await turn;
}

/** Needs a world with real stations. */
export async function openQrCounter(world: ProvidersWorld, scenario: Scenario): Promise<QrCounter> {
  const { place, configId } = await openPlace(world);
  const { stationId, cashier } = place;
  const act = (command: RequestedCommand) => {
    const actor = { kind: "cashier", id: cashier.userId, name: cashier.name } as const;
    commands += 1;
    return askStation(world.bus.nc, stationId, { commandId: `counter:${commands}`, actor, command });
  };
  const state = async (): Promise<StationState> => {
    const newest = { last_by_subj: stationLogSubject(stationId) };
    const message = await world.bus.jsm.streams.getMessage(STATION_LOG.name, newest);
    if (message === null) throw new Error("The station has no commit.");
    return decodeCommit(message.string()).state;
  };
  await waitFor("the station knows its provider", async () => {
    const response = await act({ type: "lease_acquire" });
    return response.reply.ok && (await state()).provider.configId === configId;
  });
  const ending = MAGIC_AMOUNTS.find((magic) => magic.scenario === scenario)?.ending ?? "50";
  const lines = [{ name: "Soup", quantity: 1, unitAmountMinor: `12${ending}` }];
  const { orderId } = (await world.ask(openOrder, { caller: cashier, stationId, lines })).order;
  return {
    place,
    configId,
    orderId,
    act,
    state,
    async collect(lifetimeMs) {
      const { reply } = await act({ type: "intent_create", route: "dynamic_qr", orderId, lifetimeMs });
      if (!reply.ok || reply.type !== "intent") throw new Error(`No intent: ${JSON.stringify(reply)}`);
      return reply.intentId;
    },
    presented: (intentId) =>
      waitFor("the QR", async () => {
        const { intent } = await state();
        return intent?.intentId === intentId && intent.status === "presented" && intent;
      }),
    ended: (intentId, timeoutMs) =>
      waitFor(
        "the intent's end",
        async () => (await state()).ended.find((intent) => intent.intentId === intentId),
        timeoutMs,
      ),
    order: async () => (await world.ask(getOrder, { caller: cashier, orderId })).order,
    issues: async () => (await world.ask(issueMessages.listIssues, { caller: place.operator, limit: 100 })).issues,
  };
}

async function putStation({ database }: ProvidersWorld, place: Place): Promise<void> {
  const { stationId, organizationId, filialId, owner } = place;
  const facts = { organizationId, filialId, name: "Counter", currency: "EUR", status: "active", revision: 1 } as const;
  await database.begin((sql) =>
    insertOutbox(sql, {
      key: stationKey(stationId),
      kind: "station_command",
      stationId,
      actor: { kind: "owner", id: owner.userId },
      command: { type: "station_put", stationId, station: facts },
    }),
  );
}
