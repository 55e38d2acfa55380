/** What a page shows instead of content: an empty list, a skeleton while it loads, a failure. Also notices and tags. */
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
  /** Screen readers read it at once. */
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

/**
 * Why something failed and what to do next. What is in the way of a `conflict` is only in the service's sentence. `onRetry` adds
 * a button; after an outage the notice retries by itself.
 */
interface FailureNoticeProps {
  readonly failure: Failure;
  readonly onRetry?: (() => unknown) | undefined;
}

/** The notice does not name a shorter wait: it is over before a person has read the sentence. */
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
      {failure.code === "conflict" && <ServiceSentence text={null} english={failure.detail} />}
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
  /** The meaning in the person's language; null when the page has no text for it. */
  readonly text: string | null;
  /** The service's own sentence. */
  readonly english: string;
}

/** A sentence of the service: English pages show it as it is, other languages show it as a detail. */
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

/** A list without entries: what the list contains, and how to add the first entry. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** A placeholder in the shape of the content, so that the layout does not jump. */
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
