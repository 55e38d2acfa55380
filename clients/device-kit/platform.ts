/** The functions that the kit needs from its platform. They are injected, so a test can replace time and network. */
export interface Platform {
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  readonly setTimeout: (callback: () => void, ms: number) => unknown;
  readonly clearTimeout: (timer: never) => void;
  /** Milliseconds on a monotonic clock. */
  readonly nowMs: () => number;
  /** At least 0 and below 1. */
  readonly random: () => number;
}

/** The platform of a browser, a WebView and Node 18. */
export function hostPlatform(): Platform {
  return {
    // A browser's functions throw when they are called as methods of another object.
    fetch: (url, init) => fetch(url, init),
    setTimeout: (callback, ms) => setTimeout(callback, ms),
    clearTimeout: (timer) => clearTimeout(timer),
    nowMs: () => performance.now(),
    random: () => Math.random(),
  };
}
