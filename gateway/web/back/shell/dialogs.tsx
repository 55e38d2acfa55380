/**
 * Dialogs that sections open by a call: a question before an action, a form, and secrets that are shown once. Only one is open.
 *
 *   ask({ title: words().suspend, text: words().suspendMeans, action: words().suspend, run: () => call(…), done, after });
 */
import { signal, useSignal } from "@preact/signals";
import type { ComponentChild, ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { Button } from "../../shared/button.tsx";
import { isUnknown, type Result } from "../../shared/call.ts";
import { Dialog, Question } from "../../shared/dialog.tsx";
import type { Failure } from "../../shared/failures.ts";
import { Choice, Field, focusFault } from "../../shared/field.tsx";
import { fieldFault } from "../../shared/field-error-texts.ts";
import { useKey } from "../../shared/key.ts";
import { FailureNotice, Notice } from "../../shared/states.tsx";
import { TEXT_BOUNDS } from "../../shared/text-bounds.ts";
import { toast } from "../../shared/toasts.tsx";
import { readAgain } from "../../shared/use-load.ts";
import { sharedWords } from "../../shared/words.ts";
import { shellWords } from "./words.ts";

/** The number is the key of the dialog: a second dialog of the same kind starts with new state. */
const open = signal<{ readonly number: number; readonly content: ComponentChild } | null>(null);
let lastNumber = 0;

export function showDialog(content: ComponentChild): void {
  lastNumber += 1;
  open.value = { number: lastNumber, content };
}

export function closeDialog(): void {
  open.value = null;
}

/** Closes only the calling dialog. When an answer arrives, the person may already have closed it and opened another one. */
export function useCloseThis(): () => void {
  const [number] = useState(lastNumber);
  return () => {
    if (open.peek()?.number === number) closeDialog();
  };
}

/** How a request is refused when an earlier attempt without an answer has done it already. */
const REFUSED_AS_DONE: readonly string[] = ["already_exists", "not_found", "conflict"];

/** The attempts of one dialog. Any of them, not only the last, may have succeeded without an answer. */
function useAttempts() {
  const failure = useSignal<Failure | null>(null);
  const isPerhapsDone = useRef(false);
  return {
    failure,
    ended: (result: Result<unknown>): void => {
      if (!result.ok && (isUnknown(result) || result.code === "already_created")) isPerhapsDone.current = true;
      failure.value = result.ok ? null : result;
    },
    /** Closes the dialog. When an attempt may have succeeded, the section reads its data again. */
    close: (): void => {
      if (isPerhapsDone.current) readAgain();
      closeDialog();
    },
    shown: failure.value !== null && (
      <>
        {isPerhapsDone.current && REFUSED_AS_DONE.includes(failure.value.code) && (
          <Notice tone="warn" title={shellWords().perhapsDone} />
        )}
        <FailureNotice failure={failure.value} />
      </>
    ),
  };
}

export function DialogPlace() {
  return open.value === null ? null : <div key={open.value.number}>{open.value.content}</div>;
}

/** False when a change is stored but not yet in force at every gateway and station: the service then answers 202. */
function isEffective(reply: unknown): boolean {
  return (reply as { readonly effective?: boolean } | null)?.effective !== false;
}

/** Shows what was done, and adds a note when the change is not yet in force. */
export function announce(done: string, reply: unknown): void {
  toast(isEffective(reply) ? done : `${done} ${shellWords().notEffective}`);
}

interface QuestionOptions<T> {
  readonly title: string;
  /** What happens; each entry is a paragraph. */
  readonly text: readonly string[];
  /** The verb of the button. */
  readonly action: string;
  readonly isDangerous?: boolean;
  /** Asks for a reason, which the audit log keeps. */
  readonly asksReason?: boolean;
  /** The key is for operations that accept one: a second click after a lost answer repeats the same request. */
  readonly run: (reason: string, key: string) => Promise<Result<T>>;
  /** The sentence to show after success; not set when `after` shows the result. */
  readonly done?: string;
  readonly after?: (reply: T) => unknown;
}

export function ask<T>(question: QuestionOptions<T>): void {
  showDialog(<QuestionDialog question={question as QuestionOptions<unknown>} />);
}

function QuestionDialog({ question }: { readonly question: QuestionOptions<unknown> }) {
  const reason = useSignal("");
  const attempts = useAttempts();
  const { title, text, action, isDangerous = false, asksReason = false } = question;
  const closeThis = useCloseThis();
  const { key, after } = useKey(reason.value);
  const confirm = async (): Promise<void> => {
    const result = await question.run(reason.value.trim(), key);
    after(result);
    attempts.ended(result);
    if (!result.ok) return;
    closeThis();
    if (question.done !== undefined) announce(question.done, result.reply);
    await question.after?.(result.reply);
  };
  const isMissing = asksReason && reason.value.trim() === "";
  return (
    <Question
      title={title}
      action={action}
      isDangerous={isDangerous}
      onConfirm={confirm}
      onClose={attempts.close}
      disabledBecause={isMissing ? shellWords().reasonMissing : null}
    >
      {text.map((paragraph) => (
        <p key={paragraph}>{paragraph}</p>
      ))}
      {asksReason && (
        <Field
          label={shellWords().reason}
          help={shellWords().reasonHelp}
          value={reason.value}
          maxLength={TEXT_BOUNDS.reason}
          onInput={(value) => {
            reason.value = value;
          }}
        />
      )}
      {attempts.shown}
    </Question>
  );
}

export interface FormField {
  readonly name: string;
  /** Where the request has the value, when that is not `/` and the name. */
  readonly pointer?: string;
  readonly label: string;
  readonly type?: "text" | "email" | "password" | "number";
  readonly inputMode?: "decimal" | "numeric";
  readonly initial?: string;
  readonly help?: string;
  readonly isOptional?: boolean;
  readonly maxLength?: number;
  readonly options?: readonly { readonly value: string; readonly text: string }[];
  /** The form shows the field only while this returns true. */
  readonly when?: (values: FormValues) => boolean;
  /** What is wrong with the value; the service checks everything as well. */
  readonly check?: (value: string, values: FormValues) => string | null;
}

export type FormValues = Readonly<Record<string, string>>;

interface Form<T> {
  readonly title: string;
  readonly intro?: string;
  readonly fields: readonly FormField[];
  readonly action: string;
  /**
   * The key has the same meaning as in `QuestionOptions`. Changed values are a new request with a new key. `changed` has only the
   * values that the person has changed: the others may be newer than what the form shows.
   */
  readonly run: (values: FormValues, key: string, changed: FormValues) => Promise<Result<T>>;
  readonly done?: string;
  readonly after?: (reply: T) => unknown;
}

export function openForm<T>(form: Form<T>): void {
  showDialog(<FormDialog form={form as Form<unknown>} />);
}

function FormDialog({ form }: { readonly form: Form<unknown> }) {
  const initial = Object.fromEntries(
    form.fields.map(({ name, initial: value = "", options }) => {
      const isChoosable = options?.some((option) => option.value === value) ?? true;
      return [name, isChoosable ? value : (options?.[0]?.value ?? "")];
    }),
  );
  const values = useSignal<FormValues>(initial);
  const attempts = useAttempts();
  const isBusy = useSignal(false);
  const wasTried = useSignal(false);
  const closeThis = useCloseThis();
  const { key, after } = useKey(JSON.stringify(values.value));
  const shown = form.fields.filter(({ when }) => when?.(values.value) ?? true);
  const faultOf = (field: FormField): string | null => {
    const value = (values.value[field.name] ?? "").trim();
    if (value === "") return field.isOptional === true ? null : sharedWords().required;
    return field.check?.(value, values.value) ?? null;
  };
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    wasTried.value = true;
    if (isBusy.peek()) return;
    // Read now: the browser clears `currentTarget` before the answer arrives.
    const { currentTarget: element } = event;
    if (shown.some((field) => faultOf(field) !== null)) return focusFault(element);
    isBusy.value = true;
    const trimmed = form.fields.map(({ name, type }) => {
      const value = values.peek()[name] ?? "";
      return [name, type === "password" ? value : value.trim()] as const;
    });
    const changed = trimmed.filter(([name]) => values.peek()[name] !== initial[name]);
    const result = await form.run(Object.fromEntries(trimmed), key, Object.fromEntries(changed));
    after(result);
    isBusy.value = false;
    attempts.ended(result);
    if (!result.ok) return focusFault(element);
    closeThis();
    if (form.done !== undefined) announce(form.done, result.reply);
    await form.after?.(result.reply);
  };
  return (
    <Dialog title={form.title} onClose={attempts.close}>
      <form class="stack" onSubmit={(event) => void submit(event)} noValidate>
        {form.intro !== undefined && <p class="soft">{form.intro}</p>}
        {shown.map((field) => {
          const change = (value: string): void => {
            values.value = { ...values.peek(), [field.name]: value };
          };
          const value = values.value[field.name] ?? "";
          const pointer = field.pointer ?? `/${field.name}`;
          if (field.options !== undefined) {
            return (
              <Choice key={field.name} label={field.label} value={value} options={field.options} onChange={change} />
            );
          }
          return (
            <Field
              key={field.name}
              label={field.label}
              type={field.type}
              inputMode={field.inputMode}
              autoComplete={field.type === "password" ? "new-password" : undefined}
              value={value}
              help={field.help}
              maxLength={field.maxLength}
              required={field.isOptional !== true}
              fault={(wasTried.value ? faultOf(field) : null) ?? fieldFault(attempts.failure.value, pointer)}
              onInput={change}
            />
          );
        })}
        {attempts.shown}
        <div class="row row-spread">
          <Button local onClick={attempts.close}>
            {sharedWords().cancel}
          </Button>
          <Button kind="main" submit busy={isBusy.value}>
            {form.action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

interface ShownOnce {
  readonly title: string;
  readonly values: readonly { readonly label: string; readonly value: string }[];
  readonly children?: ComponentChildren;
}

/** Shows secrets that no later answer contains. Only the button closes the dialog, not a key that is pressed by mistake. */
export function showOnce({ title, values, children }: ShownOnce): void {
  showDialog(
    <Dialog title={title} onClose={() => undefined}>
      <p>{shellWords().shownOnce}</p>
      {values.map(({ label, value }) => (
        <div key={label} class="secret">
          <p class="field-label">{label}</p>
          <Copyable value={value} label={label} class="secret-value" />
        </div>
      ))}
      {children}
      <div class="row row-spread">
        <span />
        <Button local onClick={closeDialog}>
          {shellWords().noted}
        </Button>
      </div>
    </Dialog>,
  );
}

interface CopyableProps {
  readonly value: string;
  readonly label: string;
  readonly class: string;
}

/** A text with a button that copies it. If the browser does not allow that, the button selects the text instead. */
export function Copyable({ value, label, class: className }: CopyableProps) {
  const text = useRef<HTMLElement>(null);
  const outcome = useSignal<"copied" | "selected" | null>(null);
  const copy = async (): Promise<void> => {
    outcome.value = null;
    const isCopied = await copyText(value);
    if (!isCopied && text.current !== null) getSelection()?.selectAllChildren(text.current);
    outcome.value = isCopied ? "copied" : "selected";
  };
  return (
    <>
      <div class="row">
        <code ref={text} class={className}>
          {value}
        </code>
        <Button local onClick={copy} label={`${shellWords().copy}: ${label}`}>
          {outcome.value === "copied" ? shellWords().copied : shellWords().copy}
        </Button>
      </div>
      <p class={outcome.value === "selected" ? "small" : "for-readers"} role="status">
        {outcome.value === null ? "" : outcome.value === "copied" ? shellWords().copied : shellWords().copyByHand}
      </p>
    </>
  );
}

/** Pages without TLS and old browsers have no clipboard, and a person may have denied access to it. */
async function copyText(value: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(value);
    return true;
  } catch {
    return false;
  }
}
