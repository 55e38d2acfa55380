/** The guard as an owner meets it: the very one that deliveries pass (I13). */
import { RefusedError } from "../../bus/refusals.ts";
import type { SignerDeps } from "../deps.ts";
import { TARGET_LIMITS } from "../limits.ts";
import { loopbackRule } from "../sending/attempt.ts";
import { TARGET_REFUSAL_SENTENCES } from "../target/refusal.ts";

/** Returns the address as it will be called. Throws `webhook_target_refused` with the reason. */
export async function checkTarget(
  deps: Pick<SignerDeps, "sender" | "allowLoopback" | "log">,
  target: { readonly url: string; readonly mode: "test" | "live" },
): Promise<string> {
  const loopback = loopbackRule(deps, target.mode);
  const signal = AbortSignal.timeout(TARGET_LIMITS.dnsMs + TARGET_LIMITS.connectMs);
  const checked = await deps.sender.check(target.url, { loopback, signal });
  if (!checked.ok && checked.error === "dns_failed") {
    const detail = "The host's address could not be found.";
    throw new RefusedError({ code: "webhook_target_refused", reason: "dns_failed", detail });
  }
  if (!checked.ok) {
    const { reason } = checked;
    throw new RefusedError({ code: "webhook_target_refused", reason, detail: TARGET_REFUSAL_SENTENCES[reason] });
  }
  if (loopback === "allowed") {
    deps.log.warn({ host: checked.url.host }, "WEBHOOK_ALLOW_LOOPBACK lets this test endpoint be on this machine");
  }
  return checked.url.href;
}
