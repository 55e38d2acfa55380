/**
 * The id of the request that is worked on, for every line of the log that is about it. It follows the work through all its
 * steps, and from process to process in a header of the bus (`bus/deadline.ts`).
 */
import { AsyncLocalStorage } from "node:async_hooks";

const requestIds = new AsyncLocalStorage<string | undefined>();

/** Undefined where no request is worked on. */
export function currentRequestId(): string | undefined {
  return requestIds.getStore();
}

/** Runs work for a request; without an id, for none. */
export function forRequest<T>(requestId: string | undefined, work: () => T): T {
  return requestIds.run(requestId, work);
}
