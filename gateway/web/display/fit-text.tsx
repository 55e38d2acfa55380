/** A line of text as large as its place allows, so that a guest can read it from three metres on every screen. */
interface FitTextProps {
  readonly text: string;
  /** The maximum font size as a part of the screen's height. */
  readonly heightShare: number;
  readonly class: string;
  /** The text is the heading of the screen. */
  readonly isHeading?: boolean;
}

/** The font size at which the width is measured; the result is scaled. */
const MEASURED_PX = 100;

export function FitText({ text, heightShare, class: name, isHeading = false }: FitTextProps) {
  const Box = isHeading ? "h1" : "div";
  const fit = (box: HTMLElement | null): void => {
    const line = box?.firstElementChild;
    if (!box || !(line instanceof HTMLElement)) return;
    const { style } = line;
    // Nothing has changed since the last render.
    const measured = `${text} ${box.clientWidth} ${innerHeight}`;
    if (line.dataset["fit"] === measured) return;
    line.dataset["fit"] = measured;
    style.fontSize = `${MEASURED_PX}px`;
    const bestPx = (MEASURED_PX * box.clientWidth) / Math.max(1, line.offsetWidth);
    style.fontSize = `${Math.floor(Math.min(bestPx, innerHeight * heightShare))}px`;
  };
  return (
    // A new function at each render, so that Preact calls it each time.
    <Box ref={(box: HTMLElement | null) => fit(box)} class={`fit ${name}`}>
      <span>{text}</span>
    </Box>
  );
}
