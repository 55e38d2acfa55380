/** The sentences about a bus that cannot be reached or used. They name servers as `host:port`, without credentials. */
import { errors } from "nats";
import { cannotBeUsed, faultOf } from "../runtime/fault.ts";
import { UserError } from "../runtime/user-error.ts";

/** UserError `nats_unreachable`. */
export function unreachableBus(servers: readonly string[], cause: unknown): UserError {
  const subject = `The NATS at ${servers.join(", ")} (NATS_URL)`;
  const sentence = cannotBeUsed(subject, codedDialError(cause)).replace("NODE_EXTRA_CA_CERTS", "NATS_CA_FILE");
  return new UserError(sentence, { code: "nats_unreachable", cause });
}

interface Refused {
  readonly servers: readonly string[];
  readonly user?: unknown;
  readonly token?: unknown;
  readonly authenticator?: unknown;
}

/** UserError `nats_refused`: the server takes none of the credentials. */
export function refusedByBus({ servers, user, token, authenticator }: Refused, cause: unknown): UserError {
  const rule =
    authenticator !== undefined
      ? "the server refuses the credentials of NATS_CREDENTIALS_FILE; write the file again for a user that the account knows"
      : user === undefined && token === undefined
        ? "the server asks for credentials and there are none; name them as in nats://user:password@127.0.0.1:4222, or set NATS_CREDENTIALS_FILE"
        : "the server refuses the user, the password or the token of the address; correct them";
  const sentence = `The NATS at ${servers.join(", ")} (NATS_URL) cannot be used: ${rule}.`;
  return new UserError(sentence, { code: "nats_refused", cause });
}

/** UserError `nats_without_jetstream`. */
export function busWithoutJetStream(server: string, cause: unknown): UserError {
  const sentence = `The NATS at ${server} (NATS_URL) cannot be used: JetStream is switched off there; switch it on in the server's configuration.`;
  return new UserError(sentence, { code: "nats_without_jetstream", cause });
}

/** UserError `nats_no_quorum`: the server runs, and too few of the others do. */
export function busWithoutQuorum(server: string, cause: unknown): UserError {
  const sentence = `The NATS at ${server} (NATS_URL) runs, and its cluster has no quorum: start most of its servers, and see that they reach each other.`;
  return new UserError(sentence, { code: "nats_no_quorum", cause });
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
