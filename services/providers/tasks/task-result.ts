/** How one attempt at a task ended. */
export type TaskResult =
  /** There is nothing left to do; the word is for whoever looks into a fault. */
  { readonly outcome: string } | { readonly retryInMs: number };
