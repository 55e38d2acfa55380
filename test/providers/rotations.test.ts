/** Simultaneous rotations of a secret: the provider signs with the secret that the service stores. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as configMessages from "../../services/bus/messages/provider-configs.ts";
import { liveSecrets } from "../../services/providers/secrets.ts";
import { createKeyring } from "../../services/runtime/keyring.ts";
import { callbackSecret } from "../../services/sandbox-provider/accounts.ts";
import { waitFor } from "../support/wait-for.ts";
import { type ProvidersWorld, refusalOf, startProvidersWorld } from "./providers-world.ts";

/** Releases the answers that the proxy delays. The provider has carried out these renewals. */
const heldBack: (() => void)[] = [];
let holdsBack = false;

/** A proxy before the sandbox provider that can delay an answer. */
const slowProxy = createServer((request, response) => {
  void (async () => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const { authorization = "" } = request.headers;
    const answer = await fetch(new URL(request.url ?? "/", world.sandboxUrl), {
      method: request.method ?? "GET",
      headers: { authorization, "content-type": "application/json" },
      ...(chunks.length === 0 ? {} : { body: Buffer.concat(chunks) }),
    });
    const body = await answer.text();
    if (holdsBack) {
      await new Promise<void>((resolve) => {
        holdsBack = false;
        heldBack.push(resolve);
      });
    }
    response.writeHead(answer.status, { "content-type": "application/json" }).end(body);
  })();
});

let world: ProvidersWorld;
beforeAll(async () => {
  world = await startProvidersWorld();
  await new Promise<void>((resolve) => {
    slowProxy.listen(0, "127.0.0.1", resolve);
  });
  world.environment["SANDBOX_PROVIDER_URL"] = `http://127.0.0.1:${(slowProxy.address() as AddressInfo).port}`;
  await world.restartProviders();
});
afterAll(async () => {
  slowProxy.closeAllConnections();
  slowProxy.close();
  await world.stop();
});

const keyOf = (name: string): Buffer => Buffer.from(String(world.environment[name]), "base64url");

/** The secret that the sandbox provider signs with now. */
async function secretAtProvider(account: string): Promise<string> {
  const [row] = await world.database<[{ generation: number }]>`
    select secret_generation as generation from sandbox_provider_accounts where account_id = ${account}`;
  return callbackSecret(keyOf("SANDBOX_PROVIDER_KEY"), account, row.generation);
}

test("a second rotation during the first: refused, and service and provider have the same newest secret", async () => {
  const place = await world.openPlace();
  const configId = await world.addSandboxConfig(place);
  const { configs } = await world.ask(configMessages.listProviderConfigs, { caller: place.owner });
  const account = String(configs[0]?.settings["account"]);
  const keyring = createKeyring(keyOf("PROVIDER_SECRETS_KEY"), []);
  const newest = async () => {
    const secrets = await liveSecrets({ database: world.database, keyring }, configId);
    return secrets["callback_secret"]?.[0];
  };
  const request = { caller: place.owner, configId, name: "callback_secret", overlapMs: 60_000 };
  const rotate = () => world.ask(configMessages.rotateProviderSecret, request);

  holdsBack = true;
  const slow = rotate();
  await waitFor("the provider has renewed it for the first", () => heldBack.length === 1);
  const refusal = await refusalOf(rotate());
  expect(refusal).toMatchObject({ code: "conflict", detail: expect.stringContaining("just being replaced") });
  for (const release of heldBack.splice(0)) release();
  await slow;
  expect(await newest()).toBe(await secretAtProvider(account));
  // After the first rotation, the second one succeeds.
  await rotate();
  expect(await newest()).toBe(await secretAtProvider(account));
});
