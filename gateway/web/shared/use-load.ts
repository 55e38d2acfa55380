/**
 * One read of the API for a view: loaded when its key appears or changes, and on a timer where the view is live. A slow answer
 * never takes the place of what is wanted now, or of a newer answer.
 */
import { type ReadonlySignal, signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Result } from "./call.ts";
import type { Failure } from "./failures.ts";

export interface Loading<T> {
  /** Null until it was read once. */
  readonly data: T | null;
  readonly failure: Failure | null;
  /** `data` is that of the key before: what is wanted is on its way. */
  readonly isOld: boolean;
  readonly reload: () => Promise<void>;
}

interface Loaded<T> {
  readonly key: string;
  readonly data: T | null;
  readonly failure: Failure | null;
}

export interface LoadOptions {
  readonly everyMs?: number | undefined;
  /** Another key is another view of the same: the old one is shown, marked busy, until the new one is there. */
  readonly keepsOld?: boolean;
  /** The same key is read again when this changes. */
  readonly again?: unknown;
}

const round = signal(0);
/** Grows when everything that is shown is to be read again. */
export const rounds: ReadonlySignal<number> = round;

/** After a sign-in, or when something may have been done whose answer was lost. */
export function readAgain(): void {
  round.value += 1;
}

/** `key` names what is read: another key is another thing. */
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
    // Another thing is wanted meanwhile, the section is gone, or a later read was faster.
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
