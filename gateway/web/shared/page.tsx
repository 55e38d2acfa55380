/** Starts a page: `startPage(<Till />)` as the last line of its `main.tsx`. */
import { type ComponentChild, render } from "preact";
import "./base.css";
import { OfflineBar } from "./states.tsx";
import { Toasts } from "./toasts.tsx";

/** Replaces the skeleton that came with the HTML. */
export function startPage(content: ComponentChild): void {
  const place = document.getElementById("page");
  if (place === null) throw new Error("The page has no place for its content.");
  place.textContent = "";
  render(
    <>
      <OfflineBar />
      {content}
      <Toasts />
    </>,
    place,
  );
}
