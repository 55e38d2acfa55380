/** A labelled input with its help and its error (fault). */

import type { InputHTMLAttributes, TargetedInputEvent } from "preact";
import { useId, useRef } from "preact/hooks";

interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly help?: string | undefined;
  /** What is wrong with the value; null when nothing is. */
  readonly fault?: string | null | undefined;
  readonly type?: "text" | "email" | "password" | "search" | "date" | "number" | undefined;
  readonly inputMode?: "text" | "decimal" | "numeric" | undefined;
  readonly autoComplete?: InputHTMLAttributes["autoComplete"] | undefined;
  readonly maxLength?: number | undefined;
  readonly required?: boolean | undefined;
  readonly placeholder?: string | undefined;
}

/**
 * Whether a person has typed a part of a date. The browser then reports an empty value. The page must not take it for a cleared
 * field, and must not write another value into the field: both would replace what is typed.
 */
export const isTypingDate = (input: HTMLInputElement | null): boolean =>
  input !== null && input.type === "date" && input.validity.badInput && document.activeElement === input;

export function Field(props: FieldProps) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const { label, value, onInput, help, fault = null, type = "text" } = props;
  // Preact's types allow other attributes for each type of input. This component has one element for all types.
  const kind: { readonly type: "text" } = { type: type as "text" };
  const described = [help !== undefined && `${id}-help`, fault !== null && `${id}-fault`].filter(Boolean).join(" ");
  return (
    <div class="field">
      <label class="field-label" for={id}>
        {label}
      </label>
      <input
        {...kind}
        ref={input}
        id={id}
        class="input"
        value={isTypingDate(input.current) ? "" : value}
        onInput={({ currentTarget }: TargetedInputEvent<HTMLInputElement>) => {
          if (!isTypingDate(currentTarget)) onInput(currentTarget.value);
        }}
        inputMode={props.inputMode}
        autoComplete={props.autoComplete ?? "off"}
        maxLength={props.maxLength}
        required={props.required}
        placeholder={props.placeholder}
        aria-invalid={fault !== null}
        aria-describedby={described || undefined}
      />
      {help !== undefined && (
        <p id={`${id}-help`} class="field-help">
          {help}
        </p>
      )}
      {fault !== null && (
        <p id={`${id}-fault`} class="field-fault" role="alert">
          {fault}
        </p>
      )}
    </div>
  );
}

/** Moves the focus to the first field with an error, after the next render has marked it. */
export function focusFault(form: EventTarget | null): void {
  if (!(form instanceof HTMLElement)) return;
  requestAnimationFrame(() => form.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus());
}

interface ChoiceProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly onChange: (value: T) => void;
  readonly options: readonly { readonly value: T; readonly text: string }[];
}

export function Choice<T extends string>({ label, value, onChange, options }: ChoiceProps<T>) {
  const id = useId();
  return (
    <div class="field">
      <label class="field-label" for={id}>
        {label}
      </label>
      <select id={id} class="input" value={value} onChange={(event) => onChange(event.currentTarget.value as T)}>
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.text}
          </option>
        ))}
      </select>
    </div>
  );
}
