/** What the sandbox provider does without a request: decides payments, delivers callbacks, and deletes old payments. */
import type { Agent } from "undici";
import { failuresOf } from "../bus/outage.ts";
import { forRequest } from "../runtime/log.ts";
import { DueTime, type Repeated, repeat, within } from "../runtime/repeat.ts";
import { type Retention, startRetention } from "../runtime/retention.ts";
import { agentTrusting } from "../runtime/trusted-certificate.ts";
import { callbackSecret, signatureHeader } from "./accounts.ts";
import { decideDue } from "./decisions.ts";
import type { SandboxDeps } from "./deps.ts";
import { SANDBOX_LIMITS } from "./limits.ts";
import {
  type CallbackRow,
  deleteOldPayments,
  findAccount,
  finishCallback,
  postponeCallback,
  readDueInMs,
  readNowMs,
  takeDueCallbacks,
} from "./sql.ts";

export function startWork(deps: SandboxDeps): Repeated {
  const connections = SANDBOX_LIMITS.callbacksAtOnce;
  const agent = agentTrusting(deps.certificateFile, { connections, pipelining: 1 });
  const atWork = new Set<Promise<void>>();
  const due = new DueTime(() => readDueInMs(deps.database), SANDBOX_LIMITS.idlePollMs);
  const turn = async (): Promise<void> => {
    if (performance.now() - deps.activity.lastPostAtMs < SANDBOX_LIMITS.busyMs) due.readAgain();
    if (!(await due.isDue())) return;
    await decideDue(deps.database);
    for (const delivery of await startDueCallbacks(deps, agent, SANDBOX_LIMITS.callbacksAtOnce - atWork.size)) {
      const tracked = delivery.finally(() => {
        atWork.delete(tracked);
        // This callback may be due again, or the next one of its payment.
        due.readAgain();
      });
      atWork.add(tracked);
    }
  };
  const options = { everyMs: SANDBOX_LIMITS.workIntervalMs, what: "the work of the sandbox provider", log: deps.log };
  const work = repeat(options, turn);
  const retention = startRetention(paymentRetention(deps), deps.log);
  return {
    async stop() {
      const ended = work.stop().then(() => Promise.allSettled(atWork));
      await within(ended, SANDBOX_LIMITS.drainTimeoutMs);
      await retention.stop();
      await agent.destroy();
    },
  };
}

/** Starts up to `room` due callbacks; each promise ends with its attempt. */
async function startDueCallbacks(deps: SandboxDeps, agent: Agent, room: number): Promise<Promise<void>[]> {
  if (room <= 0) return [];
  const due = await takeDueCallbacks(deps.database, room, SANDBOX_LIMITS.callbackClaimMs);
  return due.map((callback) => forRequest(callback.request_id ?? undefined, () => deliver(deps, agent, callback)));
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
    // The callback is due again when its claim is over.
    const failures = failuresOf(deps.log, "a sandbox callback could not be processed");
    failures.failed(error, { callbackId: callback.callback_id });
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
        "x-provider-signature": signatureHeader(callback.body, secrets, await readNowMs(deps.database)),
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

function paymentRetention({ database }: SandboxDeps): Retention {
  const { retentionDays, retention } = SANDBOX_LIMITS;
  return {
    what: "old sandbox payments",
    ...retention,
    removals: { payments: (rows) => database.begin((tx) => deleteOldPayments(tx, retentionDays, rows)) },
  };
}
