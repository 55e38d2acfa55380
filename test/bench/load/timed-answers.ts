/** A process of the bench that does the same work at each request and answers how long it took. */
export type TimedAnswer = { readonly elapsedMs: number } | { readonly failure: string };

/** Reports ready, then answers until its parent ends it. */
export async function answerWithTime(deps: {
  readonly work: () => Promise<void>;
  readonly stop: () => Promise<void>;
}): Promise<void> {
  const answer = async (): Promise<TimedAnswer> => {
    const startedAtMs = performance.now();
    try {
      await deps.work();
      return { elapsedMs: performance.now() - startedAtMs };
    } catch (error) {
      return { failure: error instanceof Error ? (error.stack ?? error.message) : String(error) };
    }
  };
  process.on("message", () => void answer().then((answered) => process.send?.(answered)));
  const ended = Promise.withResolvers<void>();
  process.on("disconnect", ended.resolve);
  process.on("SIGTERM", () => ended.resolve());
  process.send?.({ ready: true });
  await ended.promise;
  await deps.stop();
  process.exit(0);
}
