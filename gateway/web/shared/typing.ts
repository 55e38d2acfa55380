/** A field whose text is sent while a person types. */
import { useEffect } from "preact/hooks";

/** How long to wait after a key, so that not every letter is a request. */
const TYPING_MS = 400;

/** Calls `apply` once nothing has been typed for a moment and the text is not the one that counts already. */
export function useTyped(typed: string, counts: string, apply: () => void): void {
  useEffect(() => {
    if (typed === counts) return;
    const timer = setTimeout(apply, TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
}
