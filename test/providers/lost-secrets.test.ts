/** A restored database whose PROVIDER_SECRETS_KEY is lost: the service's error, and the recovery in the guide. */
import { afterAll, beforeAll, expect, test } from "vitest";
import * as configMessages from "../../services/bus/messages/provider-configs.ts";
import { emvcoSettings } from "../support/emvco-settings.ts";
import { operationsGuide } from "../support/guide.ts";
import { newKey, type ProvidersWorld, refusalOf, startProvidersWorld } from "./providers-world.ts";

let world: ProvidersWorld;
beforeAll(async () => {
  world = await startProvidersWorld();
});
afterAll(() => world.stop());

const LOST =
  'PROVIDER_SECRETS_KEY does not open some provider secrets in the database. Set the key that sealed them, or add it to PROVIDER_SECRETS_OLD_KEYS. Where that key is lost, follow "When a secret is lost" in docs/operations.md.';

test("a lost key: the service names the recovery; after it, owners set their secrets again and payments work", async () => {
  const [sandbox, emvco] = [await world.openPlace(), await world.openPlace()];
  const configId = await world.addSandboxConfig(sandbox);
  const { config } = await world.ask(configMessages.createProviderConfig, {
    caller: emvco.owner,
    filialId: emvco.filialId,
    kind: "emvco_generic",
    mode: "test",
    name: "Acquirer",
    settings: emvcoSettings(),
  });
  await world.restartProviders(async () => {
    world.environment["PROVIDER_SECRETS_KEY"] = newKey();
    await expect(world.addProviders()).rejects.toMatchObject({ code: "provider_secrets_key_unknown", message: LOST });
    const [, statement = ""] = /psql .* -c '(delete from provider_secrets)'/.exec(operationsGuide) ?? [];
    await world.database.unsafe(statement);
  });

  // The config has no API key now, so the sandbox provider refuses the payment.
  const asked = await world.askProvider(sandbox, configId, await world.openIntent(sandbox, 1203));
  expect(asked).toEqual({ created: false, reason: "provider_refused" });
  const listed = await world.ask(configMessages.listProviderConfigs, { caller: emvco.owner });
  expect(listed.configs.map(({ secrets }) => secrets)).toEqual([[]]);

  const rotation = { caller: emvco.owner, configId: config.configId, name: "callback_secret", overlapMs: 0 };
  const { newSecrets } = await world.ask(configMessages.rotateProviderSecret, rotation);
  expect(newSecrets["callback_secret"]).toMatch(/^[\w-]{43}$/);
  const ofSandbox = { caller: sandbox.owner, configId, name: "callback_secret", overlapMs: 0 };
  expect(await refusalOf(world.ask(configMessages.rotateProviderSecret, ofSandbox))).toMatchObject({
    code: "conflict",
  });
  await world.ask(configMessages.changeProviderConfig, { caller: sandbox.owner, configId, status: "disabled" });
  // A disabled config without secrets is not used again.
  const { caller, filialId } = { caller: sandbox.owner, filialId: sandbox.filialId };
  const another = await world.ask(configMessages.ensureTestConfig, { caller, filialId });
  expect(another).toMatchObject({ isNew: true });
  expect(another.configId).not.toBe(configId);
  expect(await world.askProvider(sandbox, another.configId, await world.openIntent(sandbox, 1203))).toMatchObject({
    created: true,
  });
});
