/** What a section shows is in the address, so that a link, a reload and the way back show the same. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { Button } from "../../shared/button.tsx";
import { shellWords } from "./words.ts";

type Changes = Readonly<Record<string, string>>;

export interface Filters {
  readonly query: Changes;
  /** An empty value takes the filter off. */
  set(changes: Changes): void;
  clear(): void;
  /** The address of this section with these changes. */
  addressWith(changes: Changes): string;
}

export function useFilters(): Filters {
  const { path, query, route } = useLocation();
  // From the address itself: a filter that is typed counts after a pause, and another one may be set meanwhile.
  const addressWith = (changes: Changes): string => {
    const search = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(changes)) {
      if (value === "") search.delete(name);
      else search.set(name, value);
    }
    return search.toString() === "" ? `${path}/` : `${path}/?${search}`;
  };
  const set = (changes: Changes): void => route(addressWith(changes), true);
  return { query, set, clear: () => route(`${path}/`, true), addressWith };
}

interface FilterBarProps {
  readonly filters: Filters;
  readonly children: ComponentChildren;
  /** Behind the filters: a download, a button. */
  readonly actions?: ComponentChildren;
}

export function FilterBar({ filters, children, actions }: FilterBarProps) {
  const isSet = Object.values(filters.query).some((value) => value !== "");
  return (
    <div class="filters" role="search" aria-label={shellWords().filters}>
      {children}
      <div class="filters-end">
        {isSet && (
          <Button local kind="quiet" onClick={() => filters.clear()}>
            {shellWords().clearFilters}
          </Button>
        )}
        {actions}
      </div>
    </div>
  );
}

interface ChoiceFilterProps {
  readonly filters: Filters;
  readonly name: string;
  readonly label: string;
  readonly options: readonly { readonly value: string; readonly text: string }[];
  /** What no choice means. */
  readonly all?: string;
}

export function ChoiceFilter({ filters, name, label, options, all }: ChoiceFilterProps) {
  const id = useId();
  return (
    <div class="filter">
      <label class="filter-label" for={id}>
        {label}
      </label>
      <select
        id={id}
        class="input"
        value={filters.query[name] ?? ""}
        onChange={(event) => filters.set({ [name]: event.currentTarget.value })}
      >
        <option value="">{all ?? shellWords().all}</option>
        {options.map(({ value, text }) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

interface TextFilterProps {
  readonly filters: Filters;
  readonly name: string;
  readonly label: string;
  readonly type?: "search" | "date";
  /** What is shown while nothing is chosen. */
  readonly unset?: string;
}

/** Long enough that not each letter is a request. */
const TYPING_MS = 400;

export function TextFilter({ filters, name, label, type = "search", unset = "" }: TextFilterProps) {
  const id = useId();
  const inAddress = filters.query[name] ?? "";
  const typed = useSignal(inAddress);
  useEffect(() => {
    typed.value = inAddress;
  }, [inAddress]);
  useEffect(() => {
    if (typed.value === inAddress) return;
    const timer = setTimeout(() => filters.set({ [name]: typed.peek().trim() }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed.value]);
  const kind: { readonly type: "text" } = { type: type as "text" };
  return (
    <div class="filter">
      <label class="filter-label" for={id}>
        {label}
      </label>
      <input
        {...kind}
        id={id}
        class="input"
        value={typed.value || unset}
        onInput={(event: { readonly currentTarget: HTMLInputElement }) => {
          typed.value = event.currentTarget.value;
        }}
        autoComplete="off"
        // For browsers without a field for dates.
        placeholder={type === "date" ? "YYYY-MM-DD" : undefined}
      />
    </div>
  );
}
