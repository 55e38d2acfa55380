/** Sends callbacks that are due, until each is answered with 2xx or has been tried often enough. */
import type { Agent } from "undici";
import type { SandboxDeps } from "./deps.ts";
import { SANDBOX_LIMITS } from "./limits.ts";
import { callbackSecret, signatureHeader } from "./secrets.ts";
import { findAccount } from "./sql/accounts.ts";
import { type CallbackRow, finishCallback, postponeCallback, takeDueCallbacks } from "./sql/callbacks.ts";

/** Starts what is due within the room there is; the returned promises end with the attempts. */
export async function startDueCallbacks(deps: SandboxDeps, agent: Agent, room: number): Promise<Promise<void>[]> {
  if (room <= 0) return [];
  const due = await takeDueCallbacks(deps.database, room, SANDBOX_LIMITS.callbackClaimMs);
  return due.map((callback) => deliver(deps, agent, callback));
}

async function deliver(deps: SandboxDeps, agent: Agent, callback: CallbackRow): Promise<void> {
  try {
    const answer = await attempt(deps, agent, callback);
    const isTaken = /^2\d\d$/.test(answer);
    if (isTaken || callback.attempts >= SANDBOX_LIMITS.callbackAttempts) {
      await finishCallback(deps.database, callback, answer);
    } else {
      const { callbackPauseMs, longestCallbackPauseMs } = SANDBOX_LIMITS;
      const inMs = Math.min(callbackPauseMs * 2 ** Math.min(callback.attempts - 1, 20), longestCallbackPauseMs);
      await postponeCallback(deps.database, callback, { inMs, answer });
    }
    deps.log.info({ callbackId: callback.callback_id, attempts: callback.attempts, answer }, "sandbox callback");
  } catch (error) {
    // It is due again when the claim is over.
    deps.log.warn({ err: error, callbackId: callback.callback_id }, "a sandbox callback could not be worked on");
  }
}

/** The answer's status, or why there was none. */
async function attempt(deps: SandboxDeps, agent: Agent, callback: CallbackRow): Promise<string> {
  const account = await findAccount(deps.database, callback.account_id);
  if (account === undefined) throw new Error("A callback has no account.");
  const { account_id: accountId, secret_generation: generation, has_previous_secret: hasPrevious } = account;
  const generations = hasPrevious ? [generation, generation - 1] : [generation];
  const secrets = generations.map((number) => callbackSecret(deps.key, accountId, number));
  const url = new URL(callback.callback_url);
  try {
    const response = await agent.request({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-provider-signature": signatureHeader(callback.body, secrets, Date.now()),
      },
      body: callback.body,
      signal: AbortSignal.timeout(SANDBOX_LIMITS.callbackMs),
    });
    await response.body.dump();
    return String(response.statusCode);
  } catch (error) {
    return error instanceof Error && error.name === "TimeoutError" ? "timed out" : "unreachable";
  }
}
