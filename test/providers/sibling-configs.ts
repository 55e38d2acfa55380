/** A second config of a merchant account, which receives the same payments as the first. */
import { expect } from "vitest";
import { moneyKey, moneyName } from "../../services/bus/messages/intents.ts";
import { type Issue } from "../../services/bus/messages/issues.ts";
import { changeProviderConfig, createProviderConfig } from "../../services/bus/messages/provider-configs.ts";
import { emvcoSettings } from "../support/emvco-settings.ts";
import { paidBody } from "./emvco-callback.ts";
import type { Scene, Scenes } from "./emvco-scene.ts";
import type { Intent, Place, ProvidersWorld } from "./providers-world.ts";

export const SIBLING_SECRET = "the-secret-of-the-config-that-came-after";

type Data = Readonly<Record<string, unknown>>;

export class SiblingConfigs {
  readonly #world: () => ProvidersWorld;
  readonly #scenes: Scenes;

  constructor(world: () => ProvidersWorld, scenes: Scenes) {
    this.#world = world;
    this.#scenes = scenes;
  }

  /** Disables the scene's config and creates another one, by default of the same account. */
  async replace(scene: Scene, merchantId?: string): Promise<number> {
    await this.#disable(scene);
    return await this.#scenes.openConfig(scene.place, "test", SIBLING_SECRET, merchantId);
  }

  /** Like `replace`, but the account has the same number at another scheme. */
  async replaceByScheme(scene: Scene, guid: string): Promise<number> {
    await this.#disable(scene);
    const { owner: caller, filialId } = scene.place;
    const settings = emvcoSettings();
    const { config } = await this.#world().ask(createProviderConfig, {
      caller,
      filialId,
      kind: "emvco_generic",
      mode: "test",
      name: "Acquirer of another scheme",
      settings: { ...settings, merchant_account: { ...settings.merchant_account, guid } },
      secrets: { callback_secret: SIBLING_SECRET },
    });
    return config.configId;
  }

  /** The owner moves the config to another account. */
  async move({ place, configId }: Pick<Scene, "place" | "configId">, merchantId: string): Promise<void> {
    const settings = emvcoSettings(merchantId);
    await this.#world().ask(changeProviderConfig, { caller: place.owner, configId, settings, reason: "moved" });
  }

  /** Opens an order whose QR of that config a guest sees. */
  async open(configId: number, place: Place): Promise<Scene> {
    const intent = await this.#world().openIntent(place, 1250);
    this.#world().stations.collect(intent);
    const answer = await this.#world().askProvider(place, configId, intent);
    const reference = /6228\d{2}24([0-9A-Z]{24})/.exec(answer.created ? answer.qrPayload : "")?.[1] ?? "";
    expect(reference).not.toBe("");
    return { place, configId, intent, reference };
  }

  /** The provider reports the scene's payment at the sibling. */
  async notify(scene: Scene, more: Data = {}): Promise<void> {
    const body = paidBody(this.#scenes.money(scene, more));
    expect((await this.#scenes.send(scene, body, SIBLING_SECRET)).status).toBe(200);
  }

  /** A guest sees a QR of that config, and its provider reports a matching payment. */
  async payBy(configId: number, place: Place, more: Data): Promise<Intent> {
    const scene = await this.open(configId, place);
    await this.notify(scene, more);
    return scene.intent;
  }

  /** The sibling receives the scene's payment with an unknown reference. Returns the issue that it raises. */
  async notifyUnmatched(scene: Scene, configId: number, more: Data = {}): Promise<Issue> {
    await this.notify({ ...scene, configId }, { reference: "UNKNOWN", ...more });
    const issue = (await this.#scenes.issuesOf(scene.place)).find((each) => each.configId === configId);
    if (issue === undefined) throw new Error("The sibling has raised no issue.");
    return issue;
  }

  /** The payment seam's refusal of this intent's order with this payment, or null when the order is paid. */
  async askSeam({ place, configId }: Omit<Scene, "reference" | "intent">, intent: Intent, reference: string) {
    const key = moneyKey({ configId, name: moneyName(reference, "") });
    const [answer] = await this.#world().database<[{ refusal: string | null }]>`
      select refusal from settle_intent(${intent.intentId}, 'asked', ${place.stationId}, ${intent.orderId}, 'dynamic_qr',
        1250, 'EUR', ${reference}, 0, ${key})`;
    return answer.refusal;
  }

  async #disable({ place, configId }: Scene): Promise<void> {
    await this.#world().ask(changeProviderConfig, {
      caller: place.owner,
      configId,
      status: "disabled",
      reason: "replaced",
    });
  }
}
