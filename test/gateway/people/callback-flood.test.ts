/** A flood of callbacks without a valid signature at the real gateway: it does not stop callbacks with one. */
import { Agent, request } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { emvcoSettings, signature } from "../../support/emvco-settings.ts";
import { HANGS } from "../../support/hangs.ts";
import { logIn } from "../../support/people.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

const SECRET = "the-secret-of-the-acquirer";
const SIGNED_CALLBACKS = 10;
const APART_MS = 50;
/** More senders than there are slots: for callbacks with a signature, and for those without one. */
const SENDERS = { signed: 600, unsigned: 100 };
/** The format of this signature is valid, the signature is not. */
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
    const outgoing = request(url, { method: "POST", agent, localAddress, headers });
    outgoing.on("response", (response) => response.resume().on("end", () => resolve(response.statusCode ?? 0)));
    outgoing.on("error", () => resolve(0));
    outgoing.end(body);
  });
}

let sent = 0;

async function sendSigned(): Promise<number> {
  sent += 1;
  const body = JSON.stringify({ id: `right-${sent}`, type: "account.updated" });
  const agent = new Agent();
  return await post(agent, configId, body, { "x-provider-signature": signature(body, SECRET) }, "127.0.0.77");
}

describe("a flood of callbacks", () => {
  it.each([
    ["unsigned callbacks for the same config", {}, () => configId, SENDERS.unsigned],
    [
      "unsigned callbacks for configs that do not exist",
      {},
      (sender: number) => 900_000 + (sender % 8),
      SENDERS.unsigned,
    ],
    ["callbacks with wrong signatures for the same config", WRONG, () => configId, SENDERS.signed],
  ])("%s: every signed callback is recorded", async (_what, headers, configOf, senders) => {
    expect(await sendSigned()).toBe(200);
    const stopping = new AbortController();
    let answers = 0;
    const flood = Array.from({ length: senders }, async (_, sender) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const from = `127.0.1.${1 + (sender % 200)}`;
      while (!stopping.signal.aborted) {
        await post(agent, configOf(sender), "{}", headers, from);
        answers += 1;
      }
      agent.destroy();
    });
    // There are as many answers as senders, so every sender of the flood has begun.
    await vi.waitUntil(() => answers >= senders, HANGS);
    const statuses = await Promise.all(
      Array.from({ length: SIGNED_CALLBACKS }, async (_, nth) => {
        await delay(nth * APART_MS);
        return await sendSigned();
      }),
    );
    stopping.abort();
    await Promise.all(flood);
    expect(new Set(statuses)).toEqual(new Set([200]));
  });
});
