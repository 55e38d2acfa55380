/** Buttons that say when they work, and why they do not. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId } from "preact/hooks";
import { DEADLINE_MS, isOffline } from "./call.ts";
import { now } from "./clock.ts";
import { minutesAndSeconds } from "./format.ts";
import { sharedWords } from "./words.ts";

interface ButtonProps {
  readonly children: ComponentChildren;
  /** While its promise is pending the button is busy, and further clicks do nothing. */
  readonly onClick?: (() => unknown) | undefined;
  readonly kind?: "main" | "danger" | "quiet" | undefined;
  /** A sentence: the button cannot be used now. It can still be focused, so that everyone can read why. */
  readonly disabledBecause?: string | null | undefined;
  /** Works without the service too. */
  readonly local?: boolean | undefined;
  readonly submit?: boolean | undefined;
  /** For a form's submit button, whose work the form does. */
  readonly busy?: boolean | undefined;
  readonly label?: string | undefined;
  readonly class?: string | undefined;
}

export function Button(props: ButtonProps) {
  const { children, onClick, kind, local = false, submit = false, label } = props;
  const isRunning = useSignal(false);
  const reasonId = useId();
  const isBusy = props.busy === true || isRunning.value;
  const reason = props.disabledBecause ?? (isOffline.value && !local ? sharedWords().offline : null);
  const isDisabled = isBusy || reason !== null;
  // The bar above the page has the sentence; at each button it would tear the page apart.
  const isSaidAbove = (props.disabledBecause ?? null) === null;
  const busySinceMs = useSignal(0);
  useEffect(() => {
    if (isBusy) busySinceMs.value = Date.now();
  }, [isBusy]);
  const click = (event: Event): void => {
    if (isDisabled || isRunning.peek()) return event.preventDefault();
    const result = onClick?.();
    if (!(result instanceof Promise)) return;
    isRunning.value = true;
    const end = (): void => {
      isRunning.value = false;
    };
    result.then(end, end);
  };
  const classes = ["button", kind && `button-${kind}`, isBusy && "button-busy", props.class].filter(Boolean).join(" ");
  return (
    <span class="button-place">
      <button
        type={submit ? "submit" : "button"}
        class={classes}
        onClick={click}
        aria-disabled={isDisabled}
        aria-busy={isBusy}
        aria-label={label}
        aria-describedby={reason === null ? undefined : reasonId}
      >
        {children}
      </button>
      {reason !== null && (
        <span id={reasonId} class={isSaidAbove ? "button-reason for-readers" : "button-reason"}>
          {reason}
        </span>
      )}
      {isBusy && reason === null && busySinceMs.value > 0 && <Patience sinceMs={busySinceMs.value} />}
    </span>
  );
}

/** A wait that is shorter than this needs no words. */
const SLOW_MS = 2_000;

/** How long the page waits for the answer at most. */
function Patience({ sinceMs }: { readonly sinceMs: number }) {
  // The clock of the page ticks; the wait is measured by the machine's own.
  const waitedMs = now.value > 0 ? Date.now() - sinceMs : 0;
  if (waitedMs < SLOW_MS) return null;
  return (
    <span class="button-reason" role="timer">
      {sharedWords().answerWithin(minutesAndSeconds(DEADLINE_MS - waitedMs))}
    </span>
  );
}
