/** The sentence about a bus that cannot be reached. */
import { errors } from "nats";
import { cannotBeUsed, faultOf } from "../runtime/fault.ts";
import { UserError } from "../runtime/user-error.ts";

/** UserError `nats_unreachable`; `servers` as `host:port`, without credentials. */
export function unreachableBus(servers: readonly string[], cause: unknown): UserError {
  const subject = `The NATS at ${servers.join(", ")} (NATS_URL)`;
  return new UserError(cannotBeUsed(subject, codedDialError(cause)), { code: "nats_unreachable", cause });
}

/** The client's own errors have no code; they get the one that says the same. */
function codedDialError(cause: unknown): unknown {
  if (faultOf(cause) !== undefined || !(cause instanceof Error)) return cause;
  return Object.assign(new Error(cause.message, { cause }), { code: codeOf(cause) });
}

function codeOf(error: Error): string {
  if (error instanceof errors.TimeoutError) return "ETIMEDOUT";
  return error.message.includes("does not support 'tls'") ? "EPROTO" : "nats_no_greeting";
}
