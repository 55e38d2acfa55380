/**
 * One read of the API for a view: when its key appears or changes, and on a timer in a live view. A slow answer never replaces
 * a newer answer or the data of another key.
 */
import { type ReadonlySignal, signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Result } from "./call.ts";
import type { Failure } from "./failures.ts";

export interface Loading<T> {
  /** Null until the first successful read. */
  readonly data: T | null;
  readonly failure: Failure | null;
  /** `data` belongs to the previous key; the data of the new key is still loading. */
  readonly isOld: boolean;
  readonly reload: () => Promise<void>;
}

interface Loaded<T> {
  readonly key: string;
  readonly data: T | null;
  readonly failure: Failure | null;
}

interface LoadOptions {
  readonly everyMs?: number | undefined;
  /** Keeps the data of the previous key, with `isOld`, until the data of the new key has loaded. */
  readonly keepsOld?: boolean;
  /** Reads the same key again when this value changes. */
  readonly again?: unknown;
}

const round = signal(0);
/** Increases when all views must read their data again. */
export const rounds: ReadonlySignal<number> = round;

/** Call it after a sign-in, or after a request whose outcome is unknown. */
export function readAgain(): void {
  round.value += 1;
}

/** `key` identifies the data: another key means other data. */
export function useLoad<T>(key: string, load: () => Promise<Result<T>>, options: LoadOptions = {}): Loading<T> {
  const { everyMs, keepsOld = false, again } = options;
  const loaded = useSignal<Loaded<T>>({ key, data: null, failure: null });
  const current = useRef({ key, load });
  current.current = { key, load };
  const reads = useRef({ begun: 0, shown: 0 });
  const reload = async (): Promise<void> => {
    const asked = current.current;
    reads.current.begun += 1;
    const read = reads.current.begun;
    const result = await asked.load();
    // The key has changed meanwhile, or a later read was faster.
    if (current.current.key !== asked.key || read < reads.current.shown) return;
    reads.current.shown = read;
    const before = loaded.peek();
    const kept = before.key === asked.key ? before.data : null;
    loaded.value = result.ok
      ? { key: asked.key, data: result.reply, failure: null }
      : { key: asked.key, data: kept, failure: result };
  };
  useEffect(() => {
    void reload();
  }, [key, again, round.value]);
  useEffect(() => {
    if (everyMs === undefined) return;
    const timer = setInterval(() => {
      if (!document.hidden) void reload();
    }, everyMs);
    return () => clearInterval(timer);
  }, [key, everyMs]);
  const { data, failure, key: loadedKey } = loaded.value;
  if (loadedKey === key) return { data, failure, isOld: false, reload };
  return { data: keepsOld ? data : null, failure: null, isOld: keepsOld && data !== null, reload };
}
