/** Starts a page: `startPage(<Till />, () => words().title)` as the last line of its `main.tsx`. */
import { effect } from "@preact/signals";
import { type ComponentChild, render } from "preact";
import "./base.css";
import { OfflineBar } from "./states.tsx";
import { Toasts } from "./toasts.tsx";

/** Replaces the skeleton and the title of the HTML by the page's content, in the person's language. */
export function startPage(content: ComponentChild, title?: () => string): void {
  const place = document.getElementById("page");
  if (place === null) throw new Error("The page has no place for its content.");
  place.textContent = "";
  // A page that the browser restores from its memory may be out of date, or may belong to another person.
  addEventListener("pageshow", ({ persisted }) => {
    if (persisted) location.reload();
  });
  if (title !== undefined) {
    effect(() => {
      document.title = title();
    });
  }
  render(
    <>
      <OfflineBar />
      {content}
      <Toasts />
    </>,
    place,
  );
}
