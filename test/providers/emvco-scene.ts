/** A QR of an `emvco_generic` provider that a guest sees, and the steps of an operator and of the provider. */
import { expect } from "vitest";
import type { Issue } from "../../services/bus/messages/issues.ts";
import * as issueMessages from "../../services/bus/messages/issues.ts";
import * as configMessages from "../../services/bus/messages/provider-configs.ts";
import { emvcoSettings, MERCHANT_ID } from "../support/emvco-settings.ts";
import { waitFor } from "../support/wait-for.ts";
import { paidBody, sendCallback } from "./emvco-callback.ts";
import type { Intent, Place, ProvidersWorld } from "./providers-world.ts";

export const SECRET = "the-secret-of-the-callbacks-in-this-test";

export interface Scene {
  readonly place: Place;
  readonly configId: number;
  readonly intent: Intent;
  /** Our reference, which the payload has as its reference label. */
  readonly reference: string;
}

type Data = Readonly<Record<string, unknown>>;

export class Scenes {
  readonly #world: () => ProvidersWorld;

  constructor(world: () => ProvidersWorld) {
    this.#world = world;
  }

  async openConfig(
    place: Place,
    mode: "test" | "live" = "test",
    secret = SECRET,
    merchantId = MERCHANT_ID,
  ): Promise<number> {
    const { config } = await this.#world().ask(configMessages.createProviderConfig, {
      caller: place.owner,
      filialId: place.filialId,
      kind: "emvco_generic",
      mode,
      name: "Acquirer",
      settings: emvcoSettings(merchantId),
      secrets: { callback_secret: secret },
    });
    return config.configId;
  }

  async open(options: { readonly place?: Place; readonly configId?: number; readonly currency?: string } = {}) {
    const world = this.#world();
    const place = options.place ?? (await world.openPlace({ currency: options.currency ?? "EUR" }));
    const configId = options.configId ?? (await this.openConfig(place));
    const intent = await world.openIntent(place, 1250);
    world.stations.collect(intent);
    const answer = await world.askProvider(place, configId, intent);
    if (!answer.created) throw new Error(`No payment: ${answer.reason}`);
    const reference = /6228\d{2}24([0-9A-Z]{24})/.exec(answer.qrPayload)?.[1] ?? "";
    expect(reference).not.toBe("");
    return { place, configId, intent, reference } satisfies Scene;
  }

  /** The payment that matches the scene, unless stated otherwise. */
  money(scene: Scene, more: Data = {}): Data {
    const transaction_id = `T-${scene.intent.intentId}`;
    return {
      reference: scene.reference,
      transaction_id,
      merchant_id: "M-1",
      amount: "12.50",
      currency: "EUR",
      ...more,
    };
  }

  send(scene: Pick<Scene, "configId">, body: string, secret = SECRET) {
    return sendCallback(this.#world(), { configId: scene.configId, body, secret });
  }

  /** A callback that reports the scene's payment. */
  async pay(scene: Scene, more: Data = {}, id?: string): Promise<void> {
    const body = id === undefined ? paidBody(this.money(scene, more)) : paidBody(this.money(scene, more), id);
    expect((await this.send(scene, body)).status).toBe(200);
  }

  async issuesOf({ operator: caller }: Place): Promise<Issue[]> {
    return (await this.#world().ask(issueMessages.listIssues, { caller, limit: 100 })).issues;
  }

  async onlyIssueOf(place: Place): Promise<Issue> {
    const [issue, ...others] = await waitFor("an issue", async () => {
      const issues = await this.issuesOf(place);
      return issues.length > 0 && issues;
    });
    if (issue === undefined || others.length > 0) throw new Error("There is not one issue.");
    return issue;
  }

  attribute(
    { operator: caller }: Place,
    { issueId }: Issue,
    { orderId }: Intent,
    reason = "the guest showed the receipt",
  ) {
    return this.#world().ask(issueMessages.attributeIssue, { caller, issueId, orderId, reason });
  }

  close({ operator: caller }: Place, { issueId }: Issue, reason = "paid back by bank transfer") {
    return this.#world().ask(issueMessages.closeIssue, { caller, issueId, reason });
  }

  salesOf({ orderId }: Intent) {
    return this.#world().database<{ intent_id: number; reference: string; money_key: string | null }[]>`
      select intent_id, reference, money_key from transactions where order_id = ${orderId}`;
  }

  paid(scene: Scene): Promise<unknown> {
    return waitFor("a transaction", async () => (await this.salesOf(scene.intent)).length > 0);
  }

  /** Waits until the task has ended, and returns its outcome. */
  taskEnd({ intentId }: Intent, kind: string): Promise<string> {
    return waitFor(`the end of ${kind}`, async () => {
      const [row] = await this.#world().database<{ outcome: string | null }[]>`
        select outcome from provider_tasks where intent_id = ${intentId} and kind = ${kind} and done_at is not null`;
      return row?.outcome ?? undefined;
    });
  }

  /** The types of the commands that the intent's station has received, in their order. */
  commandTypes({ intentId }: Intent): string[] {
    return this.#world()
      .stations.about(intentId)
      .map(({ command }) => command.type);
  }
}
