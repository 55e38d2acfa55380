/** A button that shows whether its work is running, and why a person cannot use it now. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import { DEADLINE_MS, isOffline } from "./call.ts";
import { now } from "./clock.ts";
import { minutesAndSeconds } from "./format.ts";
import { repeatedButton } from "./repeated-taps.ts";
import { sharedWords } from "./words.ts";

interface ButtonProps {
  readonly children: ComponentChildren;
  /** While its promise is pending the button is busy, and further clicks do nothing. */
  readonly onClick?: (() => unknown) | undefined;
  readonly kind?: "main" | "danger" | "quiet" | undefined;
  /** Why a person cannot use the button now, as a sentence. The button keeps the focus, so screen readers read this. */
  readonly disabledBecause?: string | null | undefined;
  /** The button works while the page is offline. */
  readonly local?: boolean | undefined;
  readonly submit?: boolean | undefined;
  /** For a submit button: whether the form's work runs. */
  readonly busy?: boolean | undefined;
  readonly label?: string | undefined;
  readonly class?: string | undefined;
}

export function Button(props: ButtonProps) {
  const { children, onClick, kind, local = false, submit = false, label } = props;
  const isRunning = useSignal(false);
  const [appearedAtMs] = useState(() => performance.now());
  const reasonId = useId();
  const isBusy = props.busy === true || isRunning.value;
  const reason = props.disabledBecause ?? (isOffline.value && !local ? sharedWords().offline : null);
  const isDisabled = isBusy || reason !== null;
  // The bar above the page shows that the page is offline. The same sentence at each button would break the layout.
  const isShownInBar = (props.disabledBecause ?? null) === null;
  const busySinceMs = useSignal(0);
  useEffect(() => {
    if (isBusy) busySinceMs.value = Date.now();
  }, [isBusy]);
  const click = (event: MouseEvent): void => {
    if (isDisabled || isRunning.peek() || repeatedButton(event, appearedAtMs) !== null) return event.preventDefault();
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
        <span id={reasonId} class={isShownInBar ? "button-reason for-readers" : "button-reason"}>
          {reason}
        </span>
      )}
      {isBusy && reason === null && busySinceMs.value > 0 && <TimeLeft sinceMs={busySinceMs.value} />}
    </span>
  );
}

/** A shorter wait shows no text. */
const SLOW_MS = 2_000;

/** How long the page still waits for the answer. */
function TimeLeft({ sinceMs }: { readonly sinceMs: number }) {
  // `now` only renders this each second. It is the server's time, and `sinceMs` is this machine's.
  const waitedMs = now.value > 0 ? Date.now() - sinceMs : 0;
  if (waitedMs < SLOW_MS) return null;
  return (
    <span class="button-reason" role="timer">
      {sharedWords().answerWithin(minutesAndSeconds(DEADLINE_MS - waitedMs))}
    </span>
  );
}
