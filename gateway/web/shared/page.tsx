/** Starts a page: `startPage(<Till />, () => words().title)` as the last line of its `main.tsx`. */
import { effect } from "@preact/signals";
import { type ComponentChild, render } from "preact";
import "./base.css";
import { OfflineBar } from "./states.tsx";
import { Toasts } from "./toasts.tsx";

/** Replaces the skeleton that came with the HTML, and its title, in the person's language. */
export function startPage(content: ComponentChild, title?: () => string): void {
  const place = document.getElementById("page");
  if (place === null) throw new Error("The page has no place for its content.");
  place.textContent = "";
  // What the way back restores from the browser's memory may be over by now, or another person's.
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
