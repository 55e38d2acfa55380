/** Idempotency keys of one action on the page. */
import { useMemo, useState } from "preact/hooks";
import { isStillOpen, newKey, type Result } from "./call.ts";
import type { Failure } from "./failures.ts";

/**
 * The idempotency key of an action, made before the click. It stays the same while `about` is the same and no answer is
 * definite, so that repeated clicks are one request. After a definite answer the next click is a new request.
 */
export function useKey(about: string): {
  readonly key: string;
  readonly after: (result: Result<unknown> | Failure | null) => void;
} {
  const [round, setRound] = useState(0);
  // oxlint-disable-next-line react-hooks/exhaustive-deps
  const key = useMemo(newKey, [about, round]);
  return {
    key,
    after(result) {
      if (result === null || result.ok || !isStillOpen(result)) setRound((before) => before + 1);
    },
  };
}
