/** Moves the focus to a heading when the focused element has disappeared, for example a button after its decision. */
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** Whether a person has used this page. A page that has just opened keeps the focus at its beginning. */
let isUsed = false;
addEventListener("focusin", () => {
  isUsed = true;
});

/** For a heading with `tabIndex={-1}`, when it appears or when `about` changes. */
export function useHeading(about: unknown): RefObject<HTMLHeadingElement | null> {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    const isLost = isUsed && document.hasFocus() && document.activeElement === document.body;
    if (isLost) heading.current?.focus({ preventScroll: true });
  }, [about]);
  return heading;
}
