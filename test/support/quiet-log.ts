/** A log that prints nothing. */
export const QUIET = { info: () => undefined, warn: () => undefined, error: () => undefined };
