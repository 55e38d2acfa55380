/** Short messages about what has just happened, read out by screen readers. */
import { signal } from "@preact/signals";
import { errorText } from "./error-texts.ts";
import type { Failure } from "./failures.ts";
import { sharedWords } from "./words.ts";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly action?: { readonly label: string; readonly run: () => void } | undefined;
}

/** Long enough to read two sentences. A caller may choose a longer time, for example for a toast with an action. */
const SHOWN_MS = 6_000;
/** More would hide the page. Of toasts without an action only the newest is shown: the page also shows what it reports. */
const MAX_TOASTS = 3;

const toasts = signal<readonly Toast[]>([]);
let lastId = 0;

export function toast(
  text: string,
  options: { readonly action?: Toast["action"]; readonly shownMs?: number } = {},
): void {
  lastId += 1;
  const id = lastId;
  const kept = toasts.value.filter(({ action }) => action !== undefined);
  toasts.value = [...kept, { id, text, action: options.action }].slice(-MAX_TOASTS);
  setTimeout(() => closeToast(id), options.shownMs ?? SHOWN_MS);
}

/** Shows the failure of an action that has no other place for it. */
export function toastFailure(failure: Failure): void {
  const { sentence, next } = errorText(failure);
  toast(`${sentence} ${next}`);
}

/** Does what the newest toast offers, for a key that a page has for it. */
export function takeOffer(): void {
  const [offered] = toasts
    .peek()
    .filter(({ action }) => action !== undefined)
    .slice(-1);
  if (offered === undefined) return;
  closeToast(offered.id);
  offered.action?.run();
}

function closeToast(id: number): void {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, action }) => (
        <div key={id} class="toast">
          <span>{text}</span>
          {action !== undefined && (
            <button
              type="button"
              class="button"
              onClick={() => {
                closeToast(id);
                action.run();
              }}
            >
              {action.label}
            </button>
          )}
          <button type="button" class="button" aria-label={sharedWords().close} onClick={() => closeToast(id)}>
            ×
          </button>
        </div>
      ))}
    </div>
  );
}
