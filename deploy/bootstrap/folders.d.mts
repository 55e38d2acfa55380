/**
 * Makes a folder and its missing parents. It does not use `mkdir` with `recursive`, which on Node 22 never returns below
 * /proc or /sys. Throws system errors such as EACCES.
 */
export declare function makeFolder(path: string, mode?: number): void;

/** Named waits of the lock, in milliseconds. */
export declare const LOCK_LIMITS: { refreshMs: number; foreignStaleMs: number; pollMs: number };

/** This process has the lock until `release()` or its end. */
export interface LockHeld {
  held: true;
  release: () => void;
}

/** Another process has the lock. `ownerVisible` is false when the owner runs on another machine or in another container. */
export interface LockRefused {
  held: false;
  ownerPid: number | undefined;
  ownerVisible: boolean;
}

/** Tries once to take the lock file at `path`, also when its process has ended. Throws system errors such as EACCES. */
export declare function tryLock(path: string): LockHeld | LockRefused;

/** Tries until the lock is held, `isFinal` is true or the time is over; `onWait` is called once, before the first wait. */
export declare function waitForLock(
  path: string,
  options: {
    timeoutMs: number;
    isFinal?: (refused: LockRefused) => boolean;
    onWait?: (refused: LockRefused) => void;
  },
): Promise<LockHeld | LockRefused>;
