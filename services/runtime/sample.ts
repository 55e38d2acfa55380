/** A look at something that may not answer: shared by all who look at the same time, and never waited for longer than said. */
export type Sample<T> = () => Promise<T | undefined>;

/**
 * Undefined when `read` fails or is not done after `limitMs`. A read that takes longer goes on; whoever looks meanwhile
 * waits for that one, so that there is never more than one.
 */
export function sample<T>(read: () => Promise<T>, limitMs: number): Sample<T> {
  let underWay: Promise<T | undefined> | undefined;
  return async () => {
    underWay ??= read()
      .catch(() => undefined)
      .finally(() => {
        underWay = undefined;
      });
    const late = Promise.withResolvers<undefined>();
    const timer = setTimeout(() => late.resolve(undefined), limitMs);
    try {
      return await Promise.race([underWay, late.promise]);
    } finally {
      clearTimeout(timer);
    }
  };
}
