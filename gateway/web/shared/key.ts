/** Idempotency keys of one action on the page. */
import { useMemo, useState } from "preact/hooks";
import { isUnknown, newKey, type Result } from "./call.ts";
import type { Failure } from "./failures.ts";

/**
 * The key of an action, made before its click. It stays while `about` is the same and until an answer is definite, so that
 * impatience and retries are one request; after a refusal the next click is another request.
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
      if (result === null || result.ok || !isUnknown(result)) setRound((before) => before + 1);
    },
  };
}
