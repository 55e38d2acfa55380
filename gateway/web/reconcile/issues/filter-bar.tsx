import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Button } from "../../shared/button.tsx";
import { Choice, Field } from "../../shared/field.tsx";
import { typedAmount } from "../../shared/format.ts";
import { accountKey } from "../account-keys.ts";
import { go, param } from "../address.ts";
import { ISSUE_KINDS, kindTitle } from "../kind-words.ts";
import { accounts, operators, stationName, stations } from "../known.ts";
import { words } from "../words.ts";
import { FILTERS, type FilterName, filterCount, isOfView, view } from "./filter.ts";

/** The parameters that the page removes from the address when a person clears the filters. */
const WITHOUT_FILTERS: Readonly<Record<string, null>> = [...FILTERS, "issue"].reduce(
  (all, name) => ({ ...all, [name]: null }),
  {},
);

const FILTER_ID = "filter";

/** Clears the filters and moves the focus to the filter, because the clicked button disappears. */
export function clearFilters(): void {
  go(WITHOUT_FILTERS, { isStep: false });
  document.getElementById(FILTER_ID)?.focus({ preventScroll: true });
}

const change = (name: FilterName, value: string): void => go({ [name]: value, issue: null }, { isStep: false });

export function FilterBar() {
  const texts = words().filter;
  const all = { value: "", text: texts.all };
  const choice = (name: FilterName, label: string, options: readonly { value: string; text: string }[]) => (
    <Choice label={label} value={param(name)} onChange={(value) => change(name, value)} options={[all, ...options]} />
  );
  return (
    <details class="filter" open={filterCount() > 0}>
      <summary id={FILTER_ID}>{filterCount() > 0 ? texts.titleWith(filterCount()) : texts.title}</summary>
      <div class="filter-fields">
        {choice(
          "account",
          texts.account,
          accounts.value.map((account) => ({ value: accountKey(account), text: account.name })),
        )}
        {!isOfView("kind", view()) &&
          choice(
            "kind",
            texts.kind,
            ISSUE_KINDS.map((kind) => ({ value: kind, text: kindTitle(kind) })),
          )}
        {choice("source", texts.source, [
          { value: "statement", text: texts.sources.statement },
          { value: "provider", text: texts.sources.provider },
        ])}
        {choice(
          "assignee_id",
          texts.assignee,
          operators.value.map(({ user_id, name }) => ({ value: String(user_id), text: name })),
        )}
        {choice(
          "station_id",
          texts.station_id,
          stations.value.map(({ station_id }) => ({ value: String(station_id), text: stationName(station_id) })),
        )}
        <TypedFilter name="currency" pattern={/^[A-Z]{3}$/} />
        <TypedFilter name="min_amount" pattern={/^\d{1,10}(\.\d{1,3})?$/} />
        <TypedFilter name="max_amount" pattern={/^\d{1,10}(\.\d{1,3})?$/} />
      </div>
      {filterCount() > 0 && (
        <Button local kind="quiet" onClick={clearFilters}>
          {texts.clear}
        </Button>
      )}
    </details>
  );
}

interface TypedFilterProps {
  readonly name: "currency" | "min_amount" | "max_amount";
  readonly pattern: RegExp;
}

const valueOf = (typed: string): string => typed.trim().toUpperCase().replace(",", ".");

/** A filter that a person types. It applies only when the text is a complete value, such as a whole currency code. */
function TypedFilter({ name, pattern }: TypedFilterProps) {
  const typed = useSignal(typedAmount(param(name)));
  const texts = words().filter;
  const inAddress = param(name);
  useEffect(() => {
    // A person has cleared the filter, or has gone back to another value.
    if (valueOf(typed.peek()) !== inAddress) typed.value = typedAmount(inAddress);
  }, [inAddress]);
  const value = valueOf(typed.value);
  const needsCurrency = name.endsWith("_amount") && param("currency") === "" && value !== "";
  const fault = value !== "" && !pattern.test(value) ? texts.faults[name] : null;
  return (
    <Field
      label={texts[name]}
      value={typed.value}
      fault={fault ?? (needsCurrency ? texts.needsCurrency : null)}
      onInput={(text) => {
        typed.value = text;
        const next = valueOf(text);
        if (next === "" || pattern.test(next)) change(name, next);
      }}
    />
  );
}
