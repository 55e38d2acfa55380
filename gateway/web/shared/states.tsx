/** What stands in the place of content: nothing there yet, not loaded, failed; and notices and tags. */
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { Button } from "./button.tsx";
import { isOffline } from "./call.ts";
import { errorText } from "./error-texts.ts";
import type { Failure } from "./failures.ts";
import { minutesAndSeconds } from "./format.ts";
import { language } from "./language.ts";
import { sharedWords } from "./words.ts";

export type Tone = "good" | "warn" | "bad" | "accent" | "plain";

export function Tag({ tone = "plain", children }: { readonly tone?: Tone; readonly children: ComponentChildren }) {
  return <span class={`tag tag-${tone}`}>{children}</span>;
}

interface NoticeProps {
  readonly tone?: Exclude<Tone, "accent">;
  readonly title: string;
  readonly children?: ComponentChildren;
  /** Read out at once. */
  readonly isUrgent?: boolean;
}

export function Notice({ tone = "plain", title, children, isUrgent = false }: NoticeProps) {
  return (
    <div class={`notice notice-${tone}`} role={isUrgent ? "alert" : undefined}>
      <p class="notice-title">{title}</p>
      {children}
    </div>
  );
}

/** Why something failed and what to do next; with `onRetry` a button for it, which after an outage is not needed. */
interface FailureNoticeProps {
  readonly failure: Failure;
  readonly onRetry?: (() => unknown) | undefined;
}

/** A shorter wait is over when the sentence is read. */
const NAMED_WAIT_MS = 10_000;

export function FailureNotice({ failure, onRetry }: FailureNoticeProps) {
  const { sentence, next } = errorText(failure);
  const { retryAfterMs } = failure;
  useEffect(
    () =>
      isOffline.subscribe((isWithout) => {
        if (!isWithout && failure.code === "offline") onRetry?.();
      }),
    [failure],
  );
  return (
    <Notice tone="bad" title={sentence} isUrgent>
      <p>{next}</p>
      {retryAfterMs !== null && retryAfterMs >= NAMED_WAIT_MS && (
        <p>{sharedWords().tryAgainIn(minutesAndSeconds(retryAfterMs))}</p>
      )}
      {failure.request_id !== undefined && (
        <p class="small soft">
          {sharedWords().requestNumber} <code>{failure.request_id}</code>
        </p>
      )}
      {onRetry !== undefined && (
        <p>
          <Button onClick={onRetry}>{sharedWords().retry}</Button>
        </p>
      )}
    </Notice>
  );
}

interface ServiceSentenceProps {
  /** What it means, in the person's language; null where the page does not know it. */
  readonly text: string | null;
  /** The service's own sentence. */
  readonly english: string;
}

/** What the service says in a sentence of its own: in English as it is, in another language as a detail. */
export function ServiceSentence({ text, english }: ServiceSentenceProps) {
  if (language.value === "en" && english !== "") return <p>{english}</p>;
  return (
    <>
      {text !== null && <p>{text}</p>}
      {english !== "" && (
        <details>
          <summary class="small">{sharedWords().inEnglish}</summary>
          <p lang="en">{english}</p>
        </details>
      )}
    </>
  );
}

/** A list without entries: what would be here, and how the first one gets here. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** In the shape of what comes, so that nothing jumps. */
export function Skeleton({ blocks = 2 }: { readonly blocks?: number }) {
  return (
    <div class="skeleton" role="status" aria-label={sharedWords().loading}>
      <div class="skeleton-bar" />
      {Array.from({ length: blocks }, (_unused, index) => (
        <div key={index} class="skeleton-block" />
      ))}
    </div>
  );
}

export function OfflineBar() {
  return (
    <div role="status" class="offline-place">
      {isOffline.value && <p class="offline-bar">{sharedWords().offline}</p>}
    </div>
  );
}
