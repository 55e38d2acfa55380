/**
 * Whether a running nats-server can store messages. After a full disk it runs on, greets its clients and refuses or
 * forgets every message until it is started again.
 */
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { deployLimits } from "../limits.ts";

const healthSchema = z.looseObject({ status: z.string(), error: z.string().optional() });

/**
 * Checks every second. Resolves to nats-server's reason, in its own words, when it has said several times in a row that
 * it cannot store; undefined when the signal is given. A server that does not answer is no such server: it may be busy or
 * stopped, and its clients notice that by themselves.
 */
export async function untilUnhealthy(healthUrl: string, signal: AbortSignal): Promise<string | undefined> {
  for (let failures = 0; !signal.aborted; ) {
    await delay(deployLimits.natsHealthMs, undefined, { signal }).catch(() => undefined);
    const reason = await faultOf(healthUrl, signal);
    failures = reason === undefined ? 0 : failures + 1;
    if (reason !== undefined && failures >= deployLimits.natsHealthFailures) return reason;
  }
  return undefined;
}

async function faultOf(healthUrl: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    const response = await fetch(healthUrl, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(deployLimits.natsHealthMs)]),
    });
    const health = healthSchema.safeParse(await response.json());
    if (response.ok || !health.success) return undefined;
    return health.data.error ?? health.data.status;
  } catch {
    return undefined;
  }
}
