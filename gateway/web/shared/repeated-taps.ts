/**
 * The second tap of a double tap. The answer to the first tap may replace or move the buttons under the finger, and the person
 * has not read what is there now. So the second tap still means the first button.
 */
interface Tap {
  readonly button: Element;
  readonly x: number;
  readonly y: number;
  readonly atMs: number;
}

/** A person who taps later than this has read what is there now. A finger moves a little between two taps. */
const REPEATED_MS = 500;
const SAME_PLACE_PX = 24;

let last: Tap | null = null;
let isRepeated = false;

const buttonOf = (element: EventTarget | null): Element | null =>
  element instanceof Element ? element.closest("button") : null;

// Runs after the button's own listener. A click by keyboard or by a screen reader has no place.
addEventListener("click", ({ detail, clientX: x, clientY: y, target }) => {
  const button = buttonOf(target);
  // A third tap may mean the first button, too.
  if (!isRepeated) last = detail === 0 || button === null ? null : { button, x, y, atMs: performance.now() };
  isRepeated = false;
});

// A person who has used a key or the back button in between taps again.
for (const name of ["keydown", "popstate"]) {
  addEventListener(name, () => {
    last = null;
  });
}

/** The button that a click on another button still means; null for an ordinary click. */
export function repeatedButton(
  { detail, clientX, clientY, currentTarget }: MouseEvent,
  appearedAtMs = 0,
): Element | null {
  if (detail === 0 || last === null || last.button === currentTarget) return null;
  const { button, x, y, atMs } = last;
  if (performance.now() - Math.max(appearedAtMs, atMs) > REPEATED_MS) return null;
  if (Math.abs(clientX - x) > SAME_PLACE_PX || Math.abs(clientY - y) > SAME_PLACE_PX) return null;
  isRepeated = buttonOf(document.elementFromPoint(x, y)) !== button;
  return isRepeated ? button : null;
}
