/**
 * A dialog above the page. The browser's own dialog keeps the focus inside and closes with Escape. For browsers without it,
 * a box does the same.
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
 * The elements that had the focus before each open dialog, and receive it back. On a slow machine a second dialog may open
 * before the first one has returned the focus. No element has the focus then, and both dialogs have the same opener.
 */
const openers: { readonly element: HTMLElement | undefined }[] = [];

export function Dialog({ title, children, onClose }: DialogProps) {
  const titleId = useId();
  const native = useRef<HTMLDialogElement>(null);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const active = document.activeElement;
    const hasFocus = active instanceof HTMLElement && active !== document.body;
    const opener = { element: hasFocus ? active : openers[openers.length - 1]?.element };
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
          // Without this, Chrome closes the dialog at a second Escape, even when the page wants to keep it open.
          event.preventDefault();
          onClose();
        }}
        // Other ways to close it, such as the back gesture. At the second one Chrome closes it without this event.
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

/** Whether the calling dialog is still open: when an answer arrives, the person may have closed it and opened another one. */
export function useIsOpen(): () => boolean {
  const isOpen = useRef(true);
  useEffect(
    () => () => {
      isOpen.current = false;
    },
    [],
  );
  return () => isOpen.current;
}

interface QuestionProps extends DialogProps {
  /** The text of the button that confirms: a verb, not "OK". */
  readonly action: string;
  /** The text of the other button when "Cancel" could be mistaken for the action. */
  readonly back?: string;
  readonly onConfirm: () => unknown;
  readonly isDangerous?: boolean;
  readonly disabledBecause?: string | null;
}

/** Asks before an important action. The button that does nothing comes first. */
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
      {/* Enter in a field clicks the submit button. A dangerous action wants its button. */}
      <form class="stack" onSubmit={(event) => event.preventDefault()}>
        {children}
        <div class="row row-spread dialog-buttons">
          <Button local onClick={dialog.onClose}>
            {back ?? sharedWords().cancel}
          </Button>
          <Button
            kind={isDangerous === true ? "danger" : "main"}
            submit={isDangerous !== true}
            onClick={onConfirm}
            disabledBecause={disabledBecause}
          >
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
