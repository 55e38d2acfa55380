/** Changes an account: its name, and what decides which payments its statements should show. */
import { useSignal } from "@preact/signals";
import { useState } from "preact/hooks";
import { Button } from "../../shared/button.tsx";
import { call } from "../../shared/call.ts";
import type { Failure } from "../../shared/failures.ts";
import { Field, focusFault } from "../../shared/field.tsx";
import { fieldFault } from "../../shared/field-error-texts.ts";
import type { RequestOf } from "../../shared/operations.ts";
import { FailureNotice } from "../../shared/states.tsx";
import { toast } from "../../shared/toasts.tsx";
import { sharedWords } from "../../shared/words.ts";
import { type Account, loadKnown } from "../known.ts";
import { words } from "../words.ts";
import { FilialChoice } from "./filial-choice.tsx";

const FIELDS = { name: "text", settlement_delay_days: "number", last_day: "date" } as const;
type Name = keyof typeof FIELDS;
const NAMES = Object.keys(FIELDS) as Name[];
type Changes = RequestOf<"PATCH /api/reconciliation/v1/accounts/{account_id}/">["body"];

interface ChangeAccountProps {
  readonly account: Account;
  readonly onDone: () => void;
}

export function ChangeAccount({ account, onDone }: ChangeAccountProps) {
  /** The account as the person has seen it. Another person may change it meanwhile. */
  const [seen] = useState(account);
  const shown = {
    name: seen.name,
    settlement_delay_days: String(seen.settlement_delay_days),
    last_day: seen.last_day ?? "",
  };
  const typed = useSignal<Readonly<Record<Name, string>>>(shown);
  const filialId = useSignal(seen.filial_id);
  const failure = useSignal<Failure | null>(null);
  const isBusy = useSignal(false);
  const texts = words().account;
  const faultOf = (name: Name): string | null => {
    const isLeftEmpty = failure.value !== null && name !== "last_day" && typed.value[name].trim() === "";
    return isLeftEmpty ? sharedWords().required : fieldFault(failure.value, `/${name}`);
  };
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (isBusy.peek()) return;
    isBusy.value = true;
    // Read now: the browser clears `currentTarget` before the answer arrives.
    const { currentTarget: element } = event;
    const { name, settlement_delay_days: delay, last_day } = typed.peek();
    // Only what the person has changed: the rest may be newer than what the form shows.
    const body: Changes = {
      ...(name === shown.name ? {} : { name: name.trim() }),
      ...(filialId.peek() === seen.filial_id ? {} : { filial_id: filialId.peek() }),
      // An empty field is no zero: the service refuses it.
      ...(delay === shown.settlement_delay_days
        ? {}
        : { settlement_delay_days: delay === "" ? Number.NaN : Number(delay) }),
      ...(last_day === shown.last_day ? {} : { last_day: last_day === "" ? null : last_day }),
    };
    const path = { account_id: seen.account_id };
    const done = await call("PATCH /api/reconciliation/v1/accounts/{account_id}/", { path, body });
    failure.value = done.ok ? null : done;
    if (!done.ok) focusFault(element);
    else {
      await loadKnown();
      toast(texts.changed);
      onDone();
    }
    isBusy.value = false;
  };
  // The browser refuses a day that does not exist, or of which a part is missing: the page would read it as none.
  return (
    <form class="card stack add-account" onSubmit={(event) => void submit(event)}>
      <h2>{texts.change}</h2>
      {NAMES.map((name) => (
        <Field
          key={name}
          type={FIELDS[name]}
          label={texts.fields[name]}
          help={texts.helps[name]}
          value={typed.value[name]}
          fault={faultOf(name)}
          onInput={(value) => {
            typed.value = { ...typed.value, [name]: value };
          }}
        />
      ))}
      <FilialChoice filialId={filialId} />
      {failure.value !== null && <FailureNotice failure={failure.value} />}
      <div class="row">
        <Button local onClick={onDone}>
          {sharedWords().cancel}
        </Button>
        <Button submit kind="main" busy={isBusy.value}>
          {texts.change}
        </Button>
      </div>
    </form>
  );
}
