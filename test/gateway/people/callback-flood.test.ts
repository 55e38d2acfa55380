/** A flood of callbacks without a right signature through the real gateway does not stop the signed ones. */
import { Agent, request } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { emvcoSettings, signature } from "../../support/emvco-settings.ts";
import { HANGS } from "../../support/hangs.ts";
import { logIn } from "../../support/people.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

const SECRET = "the-secret-of-the-acquirer";
const RIGHT_ONES = 10;
const APART_MS = 50;
/** More than all slots of callbacks. */
const SENDERS = 600;
/** The form is right, the signature is not. */
const WRONG = { "x-provider-signature": `t=1790000000,v1=${"0".repeat(64)}` };

let system: TestSystem;
let configId = 0;
beforeAll(async () => {
  system = await sharedSystem();
  const owner = await logIn(system.baseUrl, "backoffice", system.owner);
  const { filial_id } = await owner.good<{ filial_id: number }>("POST", "filials/", { body: { name: "Harbour" } });
  const facts = { filial_id, kind: "emvco_generic", mode: "live", name: "Harbour", settings: emvcoSettings() };
  const body = { ...facts, secrets: { callback_secret: SECRET } };
  const made = await owner.good<{ provider_config: { config_id: number } }>("POST", "provider-configs/", { body });
  configId = made.provider_config.config_id;
});
afterAll(() => system.stop());

function post(agent: Agent, config: number, body: string, more: Record<string, string>, localAddress: string) {
  return new Promise<number>((resolve) => {
    const url = new URL(`/api/providers/v1/${config}/callback/`, system.baseUrl);
    const headers = { "content-length": body.length, ...more };
    const asked = request(url, { method: "POST", agent, localAddress, headers });
    asked.on("response", (response) => response.resume().on("end", () => resolve(response.statusCode ?? 0)));
    asked.on("error", () => resolve(0));
    asked.end(body);
  });
}

let sent = 0;

async function sendRight(): Promise<number> {
  sent += 1;
  const body = JSON.stringify({ id: `right-${sent}`, type: "account.updated" });
  const agent = new Agent();
  return await post(agent, configId, body, { "x-provider-signature": signature(body, SECRET) }, "127.0.0.77");
}

it.each([
  ["unsigned callbacks for the same config", {}, () => configId],
  ["unsigned callbacks for configs that the senders made up", {}, (sender: number) => 900_000 + (sender % 8)],
  ["callbacks with wrong signatures for the same config", WRONG, () => configId],
])("%s: every signed one is recorded", async (_what, headers, configOf) => {
  expect(await sendRight()).toBe(200);
  const over = new AbortController();
  let answers = 0;
  const flood = Array.from({ length: SENDERS }, async (_, sender) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const from = `127.0.1.${1 + (sender % 200)}`;
    while (!over.signal.aborted) {
      await post(agent, configOf(sender), "{}", headers, from);
      answers += 1;
    }
    agent.destroy();
  });
  // As many answers as senders: the flood is in full swing.
  await vi.waitUntil(() => answers >= SENDERS, HANGS);
  const right = await Promise.all(
    Array.from({ length: RIGHT_ONES }, async (_, nth) => {
      await delay(nth * APART_MS);
      return await sendRight();
    }),
  );
  over.abort();
  await Promise.all(flood);
  expect(new Set(right)).toEqual(new Set([200]));
});
