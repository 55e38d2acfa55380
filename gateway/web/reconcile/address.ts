/** The address of the page names what it shows, so that a link, the back button and a reload show the same. */
import { signal } from "@preact/signals";

const params = signal(new URLSearchParams(location.search));

addEventListener("popstate", () => {
  params.value = new URLSearchParams(location.search);
});

/** Empty when the address does not have the parameter. A component that reads it renders again when it changes. */
export const param = (name: string): string => params.value.get(name) ?? "";

type Changes = Readonly<Record<string, string | number | null>>;

/** The address with these changes; null and the empty text remove a part. */
export function addressWith(changes: Changes): string {
  const next = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") next.delete(name);
    else next.set(name, String(value));
  }
  const text = next.toString();
  return text === "" ? location.pathname : `${location.pathname}?${text}`;
}

/** `isStep` adds an entry to the history, so that the back button undoes the change. */
export function go(changes: Changes, { isStep = true }: { readonly isStep?: boolean } = {}): void {
  const address = addressWith(changes);
  if (isStep) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
  params.value = new URLSearchParams(location.search);
}

export const SECTIONS = ["issues", "imports", "periods", "report"] as const;
export type Section = (typeof SECTIONS)[number];
export const section = (): Section => SECTIONS.find((name) => name === param("section")) ?? "issues";

/** For the `onClick` of a link to an address of this page. The browser opens the link where the click asks for another tab or window. */
export function followLink(event: MouseEvent, open: () => void): void {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  open();
}
