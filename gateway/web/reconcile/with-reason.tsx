import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { Question, useIsOpen } from "../shared/dialog.tsx";
import type { Failure } from "../shared/failures.ts";
import { Field } from "../shared/field.tsx";
import { useKey } from "../shared/key.ts";
import { Refusal } from "./refusal.tsx";
import { words } from "./words.ts";

interface WithReasonProps {
  readonly title: string;
  readonly action: string;
  readonly label?: string;
  readonly children: ComponentChildren;
  readonly blockedBecause?: string | null;
  readonly isDangerous?: boolean;
  /** The dialog closes when it resolves to null. */
  readonly onConfirm: (text: string, key: string) => Promise<Failure | null>;
  readonly onClose: () => void;
}

/** A dialog that asks for a reason. After a failure it stays open and shows the failure. */
export function WithReason(props: WithReasonProps) {
  const { title, action, children, onConfirm, onClose, label = words().reason, isDangerous = false } = props;
  const text = useSignal("");
  const failure = useSignal<Failure | null>(null);
  const isEmpty = text.value.trim() === "";
  const { key, after } = useKey(text.value);
  const isOpen = useIsOpen();
  const confirm = async (): Promise<void> => {
    failure.value = await onConfirm(text.peek().trim(), key);
    after(failure.value);
    if (failure.value === null && isOpen()) onClose();
  };
  return (
    <Question
      title={title}
      action={action}
      isDangerous={isDangerous}
      onConfirm={confirm}
      onClose={onClose}
      disabledBecause={props.blockedBecause ?? (isEmpty ? words().reasonNeeded : null)}
    >
      {children}
      <Field
        label={label}
        value={text.value}
        onInput={(value) => {
          text.value = value;
        }}
      />
      {failure.value !== null && <Refusal failure={failure.value} />}
    </Question>
  );
}
