/** Adds an account at a provider or bank. Each statement belongs to an account. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Button } from "../../shared/button.tsx";
import { call } from "../../shared/call.ts";
import type { Failure } from "../../shared/failures.ts";
import { Choice, Field, focusFault } from "../../shared/field.tsx";
import { fieldFault } from "../../shared/field-error-texts.ts";
import { FailureNotice } from "../../shared/states.tsx";
import { sharedWords } from "../../shared/words.ts";
import { go } from "../address.ts";
import { accounts, filials, loadKnown } from "../known.ts";
import { words } from "../words.ts";
import { FilialChoice } from "./filial-choice.tsx";

const NAMES = ["name", "provider", "reference", "currency", "time_zone"] as const;
type Name = (typeof NAMES)[number];

export function AddAccount({ onDone }: { readonly onDone: () => void }) {
  const typed = useSignal<Readonly<Record<Name, string>>>({
    name: "",
    provider: "",
    reference: "",
    currency: "",
    time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone ?? "",
  });
  const filialId = useSignal<number | null>(null);
  const only = filials.value.length === 1 ? filials.value[0]?.filial_id : undefined;
  useEffect(() => {
    if (only !== undefined) filialId.value = only;
  }, [only]);
  const mode = useSignal<"live" | "test">("live");
  const failure = useSignal<Failure | null>(null);
  const isBusy = useSignal(false);
  const texts = words().account;
  const faultOf = (name: Name): string | null => fieldFault(failure.value, `/${name}`);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (isBusy.peek()) return;
    isBusy.value = true;
    // Read now: the browser clears `currentTarget` before the answer arrives.
    const { currentTarget: element } = event;
    const { name, provider, reference, currency, time_zone } = typed.peek();
    const filial_id = filialId.peek();
    const body = {
      name: name.trim(),
      provider: provider.trim(),
      reference: reference.trim(),
      mode: mode.peek(),
      ...(currency.trim() === "" ? {} : { currency: currency.trim().toUpperCase() }),
      ...(filial_id === null ? {} : { filial_id }),
      ...(time_zone.trim() === "" ? {} : { time_zone: time_zone.trim() }),
    };
    const done = await call("POST /api/reconciliation/v1/accounts/", { body });
    failure.value = done.ok ? null : done;
    if (!done.ok) focusFault(element);
    else {
      await loadKnown();
      go({ account_id: done.reply.account_id }, { isStep: false });
      onDone();
    }
    isBusy.value = false;
  };
  return (
    <form class="card stack add-account" onSubmit={(event) => void submit(event)}>
      <h2>{texts.title}</h2>
      <p class="soft">{texts.help}</p>
      {NAMES.map((name) => (
        <Field
          key={name}
          label={texts.fields[name]}
          help={texts.helps[name]}
          value={typed.value[name]}
          fault={faultOf(name)}
          required={name === "name" || name === "provider" || name === "reference"}
          onInput={(value) => {
            typed.value = { ...typed.value, [name]: value };
          }}
        />
      ))}
      <FilialChoice filialId={filialId} />
      <Choice
        label={texts.mode}
        value={mode.value}
        onChange={(value) => {
          mode.value = value;
        }}
        options={[
          { value: "live", text: texts.modes.live },
          { value: "test", text: texts.modes.test },
        ]}
      />
      {failure.value !== null && <FailureNotice failure={failure.value} />}
      <div class="row">
        {accounts.value.length > 0 && (
          <Button local onClick={onDone}>
            {sharedWords().cancel}
          </Button>
        )}
        <Button submit kind="main" busy={isBusy.value}>
          {texts.add}
        </Button>
      </div>
    </form>
  );
}
