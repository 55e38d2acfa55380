import { errors } from "nats";

/** Whether a request failed because no process listens: the bus has delivered it to none, so nothing was done. */
export function isNoResponders(cause: unknown): boolean {
  return cause instanceof errors.NoRespondersError || (cause instanceof errors.RequestError && cause.isNoResponders());
}
