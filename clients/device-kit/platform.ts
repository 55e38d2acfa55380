/** What the kit needs of the place where it runs. All of it is injected, so a test can replace time and network. */
export interface Platform {
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  readonly setTimeout: (callback: () => void, ms: number) => unknown;
  readonly clearTimeout: (timer: never) => void;
  /** Milliseconds on a clock that no person can change. */
  readonly nowMs: () => number;
  /** From 0 up to 1. */
  readonly random: () => number;
}

/** The platform of a browser, a WebView and Node 18. */
export function hostPlatform(): Platform {
  return {
    // Called as a method of another object, a browser's functions throw.
    fetch: (url, init) => fetch(url, init),
    setTimeout: (callback, ms) => setTimeout(callback, ms),
    clearTimeout: (timer) => clearTimeout(timer),
    nowMs: () => performance.now(),
    random: () => Math.random(),
  };
}
