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
  // A process that never has an id pays nothing: the runtime follows asynchronous work only once it has been asked to.
  if (requestId === undefined && requestIds.getStore() === undefined) return work();
  return requestIds.run(requestId, work);
}
