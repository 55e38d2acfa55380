/** An account at the sandbox provider, and an owner's test config that names it. */
import { expect } from "vitest";
import type { ApiClient } from "../support/api-client.ts";
import type { ChaosStation } from "./chaos-world.ts";

export interface ProviderAccount {
  readonly configId: number;
  readonly account: string;
  readonly apiKey: string;
  readonly callbackSecret: string;
  /** The address of the sandbox provider. */
  readonly url: string;
}

/** Opens the account and the config for the stations of a filial. */
export async function openProviderAccount(request: {
  readonly owner: ApiClient;
  readonly filialId: number;
  readonly url: string;
  readonly installationKey: string;
}): Promise<ProviderAccount> {
  const { owner, filialId, url, installationKey } = request;
  const answer = await fetch(`${url}/v1/accounts`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${installationKey}` },
    body: JSON.stringify({ name: "Chaos" }),
  });
  expect(answer.status).toBe(201);
  const opened = (await answer.json()) as { account: string; api_key: string; callback_secret: string };
  const { account, api_key: apiKey, callback_secret: callbackSecret } = opened;
  const facts = { filial_id: filialId, kind: "sandbox", mode: "test", name: "Provider under chaos" };
  const { provider_config } = await owner.good<{ provider_config: { config_id: number } }>(
    "POST",
    "provider-configs/",
    {
      body: { ...facts, settings: { account }, secrets: { api_key: apiKey, callback_secret: callbackSecret } },
    },
  );
  return { configId: provider_config.config_id, account, apiKey, callbackSecret, url };
}

/** Fails until each station offers QRs. A new station receives its provider a moment later. */
export async function offersQr(cashier: ApiClient, stations: readonly ChaosStation[]): Promise<void> {
  for (const { path } of stations) {
    const { text } = await cashier.call("GET", `${path}/routes/`);
    expect(text).toContain('"route":"dynamic_qr","offered":true');
  }
}
