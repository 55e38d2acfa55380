/** Work that may go on after its request is answered: the answer waits for its end, and for a moment at most. */
export async function doneOrAfter(done: Promise<unknown>, waitMs: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, waitMs);
  try {
    await Promise.race([done, promise]);
  } finally {
    clearTimeout(timer);
  }
}
