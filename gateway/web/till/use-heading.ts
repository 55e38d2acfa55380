/** Where keyboard and screen reader go on when what had the focus is gone, for example a button after its decision. */
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** Whether a person has used this page: one that opens leaves the focus at its beginning. */
let isUsed = false;
addEventListener("focusin", () => {
  isUsed = true;
});

/** For a heading with `tabIndex={-1}` that appears, or changes with `about`. */
export function useHeading(about: unknown): RefObject<HTMLHeadingElement | null> {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    const isLost = isUsed && document.hasFocus() && document.activeElement === document.body;
    if (isLost) heading.current?.focus({ preventScroll: true });
  }, [about]);
  return heading;
}
