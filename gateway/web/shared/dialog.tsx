/**
 * A question above the page. The browser's own dialog keeps the focus inside and closes by Escape; browsers without one get
 * a box that does the same.
 */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { Button } from "./button.tsx";
import { sharedWords } from "./words.ts";

interface DialogProps {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly onClose: () => void;
}

const FOCUSABLE = "button, input, select, textarea, a[href]";

/**
 * What had the focus before each open dialog, and gets it back. On a slow machine a dialog that follows another one begins before
 * the other has given the focus back: the focus is nowhere then, and both have the same opener.
 */
const openers: { readonly element: HTMLElement | undefined }[] = [];

export function Dialog({ title, children, onClose }: DialogProps) {
  const titleId = useId();
  const native = useRef<HTMLDialogElement>(null);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const active = document.activeElement;
    const isSomewhere = active instanceof HTMLElement && active !== document.body;
    const opener = { element: isSomewhere ? active : openers[openers.length - 1]?.element };
    openers.push(opener);
    if (native.current !== null && !native.current.open) native.current.showModal();
    box.current?.querySelector<HTMLElement>(FOCUSABLE)?.focus();
    return () => {
      const isLast = openers[openers.length - 1] === opener;
      openers.splice(openers.indexOf(opener), 1);
      if (isLast) opener.element?.focus();
    };
  }, []);
  const content = (
    <div class="stack">
      <h2 id={titleId}>{title}</h2>
      {children}
    </div>
  );
  if (typeof HTMLDialogElement === "function") {
    return (
      <dialog
        ref={native}
        class="dialog"
        aria-labelledby={titleId}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          // Else Chrome closes it at a second Escape, also one that stays.
          event.preventDefault();
          onClose();
        }}
        // Other ways to close it, for example the gesture "back": the second time Chrome does not ask.
        onCancel={(event) => {
          event.preventDefault();
          onClose();
        }}
        onClose={({ currentTarget }) => (currentTarget.isConnected ? currentTarget.showModal() : undefined)}
      >
        {content}
      </dialog>
    );
  }
  return (
    <div class="dialog-cover">
      <div
        ref={box}
        class="dialog"
        role="dialog"
        aria-modal="true"
        aria-labelledby={titleId}
        onKeyDown={(event) => keepInside(event, box.current, onClose)}
      >
        {content}
      </div>
    </div>
  );
}

function keepInside(event: KeyboardEvent, box: HTMLElement | null, onClose: () => void): void {
  if (event.key === "Escape") return onClose();
  if (event.key !== "Tab" || box === null) return;
  const all = box.querySelectorAll<HTMLElement>(FOCUSABLE);
  const [first, last] = [all[0], all[all.length - 1]];
  const isLeaving = document.activeElement === (event.shiftKey ? first : last);
  if (!isLeaving) return;
  event.preventDefault();
  (event.shiftKey ? last : first)?.focus();
}

interface QuestionProps extends DialogProps {
  /** What the button says that does it: a verb, not "OK". */
  readonly action: string;
  /** What the other button says where "Cancel" could be taken for what is asked. */
  readonly back?: string;
  readonly onConfirm: () => unknown;
  readonly isDangerous?: boolean;
  readonly disabledBecause?: string | null;
}

/** Asks before something that cannot be undone. The answer that does nothing comes first. */
export function Question({
  action,
  back,
  onConfirm,
  isDangerous,
  disabledBecause,
  children,
  ...dialog
}: QuestionProps) {
  return (
    <Dialog {...dialog}>
      {children}
      <div class="row row-spread">
        <Button local onClick={dialog.onClose}>
          {back ?? sharedWords().cancel}
        </Button>
        <Button kind={isDangerous === true ? "danger" : "main"} onClick={onConfirm} disabledBecause={disabledBecause}>
          {action}
        </Button>
      </div>
    </Dialog>
  );
}
