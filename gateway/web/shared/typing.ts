/** A field whose text is sent while a person types. */
import { useEffect } from "preact/hooks";

/** How long to wait after a key, so that not every letter is a request. */
const TYPING_MS = 400;

/** Calls `apply` once nothing has been typed for a moment, unless this text is applied already. */
export function useTyped(typed: string, applied: string, apply: () => void): void {
  useEffect(() => {
    if (typed === applied) return;
    const timer = setTimeout(apply, TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
}
