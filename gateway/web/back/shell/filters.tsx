/** The filters of a section are in the address, so that a link, a reload and the back button show the same list. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { Button } from "../../shared/button.tsx";
import { isTypingDate } from "../../shared/field.tsx";
import { Empty } from "../../shared/states.tsx";
import { useTyped } from "../../shared/typing.ts";
import { shellWords } from "./words.ts";

type Changes = Readonly<Record<string, string>>;

export interface Filters {
  readonly query: Changes;
  readonly isSet: boolean;
  /** An empty value removes the filter. */
  set(changes: Changes): void;
  clear(): void;
  /** The address of this section with these changes. */
  addressWith(changes: Changes): string;
}

/** `views` are parts of the address that choose the list and are no filters: clearing the filters keeps them. */
export function useFilters(views: readonly string[] = []): Filters {
  const { path, query, route } = useLocation();
  // Reads the current address, not `query`: a text filter is set after a pause, and another filter may be set meanwhile.
  const addressWith = (changes: Changes): string => {
    const search = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(changes)) {
      if (value === "") search.delete(name);
      else search.set(name, value);
    }
    return search.toString() === "" ? `${path}/` : `${path}/?${search}`;
  };
  const set = (changes: Changes): void => route(addressWith(changes), true);
  const names = Object.keys(query).filter((name) => views.indexOf(name) < 0);
  const clear = (): void => {
    const nothing: Record<string, string> = {};
    for (const name of names) nothing[name] = "";
    set(nothing);
    // The clicked button disappears, so the focus moves to the content.
    document.getElementById("content")?.focus({ preventScroll: true });
  };
  return { query, isSet: names.some((name) => query[name] !== ""), set, clear, addressWith };
}

interface FilterBarProps {
  readonly filters: Filters;
  readonly children: ComponentChildren;
  /** Shown after the filters, such as a download. */
  readonly actions?: ComponentChildren;
}

export function FilterBar({ filters, children, actions }: FilterBarProps) {
  return (
    <div class="filters" role="search" aria-label={shellWords().filters}>
      {children}
      <div class="filters-end">
        {filters.isSet && (
          <Button local kind="quiet" onClick={() => filters.clear()}>
            {shellWords().clearFilters}
          </Button>
        )}
        {actions}
      </div>
    </div>
  );
}

interface EmptyListProps {
  readonly filters: Filters;
  /** The title when the list has no entries without any filter. */
  readonly title: string;
  readonly text: string;
}

/** A list without entries: because of its filters, or because there is nothing yet. */
export function EmptyList({ filters, title, text }: EmptyListProps) {
  if (!filters.isSet) return <Empty title={title}>{text}</Empty>;
  return (
    <Empty title={shellWords().nothingFits}>
      <p>{shellWords().nothingFitsText}</p>
      <Button local onClick={() => filters.clear()}>
        {shellWords().clearFilters}
      </Button>
    </Empty>
  );
}

interface ChoiceFilterProps {
  readonly filters: Filters;
  readonly name: string;
  readonly label: string;
  readonly options: readonly { readonly value: string; readonly text: string }[];
  /** The text of the option that sets no filter. */
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
  /** The value that the field shows while no filter is set. */
  readonly unset?: string | undefined;
}

export function TextFilter({ filters, name, label, type = "search", unset = "" }: TextFilterProps) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const inAddress = filters.query[name] ?? "";
  const typed = useSignal(inAddress);
  useEffect(() => {
    // A person who pauses after a space goes on typing: the address has the text without it.
    if (typed.peek().trim() !== inAddress) typed.value = inAddress;
  }, [inAddress]);
  useTyped(typed.value, inAddress, () => filters.set({ [name]: typed.peek().trim() }));
  const kind: { readonly type: "text" } = { type: type as "text" };
  return (
    <div class="filter">
      <label class="filter-label" for={id}>
        {label}
      </label>
      <input
        {...kind}
        ref={input}
        id={id}
        class="input"
        value={isTypingDate(input.current) ? "" : typed.value || unset}
        onInput={({ currentTarget }: { readonly currentTarget: HTMLInputElement }) => {
          if (!isTypingDate(currentTarget)) typed.value = currentTarget.value;
        }}
        autoComplete="off"
        // For browsers without a date input.
        placeholder={type === "date" ? "YYYY-MM-DD" : undefined}
      />
    </div>
  );
}
