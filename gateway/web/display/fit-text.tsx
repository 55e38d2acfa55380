/** A line of text as large as its place allows, so that it is read from three metres on every screen. */
interface FitTextProps {
  readonly text: string;
  /** The largest part of the screen's height that it may have. */
  readonly heightShare: number;
  readonly class: string;
  /** What the screen is about. */
  readonly isHeading?: boolean;
}

/** Measured at this size, then scaled. */
const MEASURED_PX = 100;

export function FitText({ text, heightShare, class: name, isHeading = false }: FitTextProps) {
  const Box = isHeading ? "h1" : "div";
  const fit = (box: HTMLElement | null): void => {
    const line = box?.firstElementChild;
    if (!box || !(line instanceof HTMLElement)) return;
    const { style } = line;
    // Nothing has changed since the last drawing.
    const measured = `${text} ${box.clientWidth} ${innerHeight}`;
    if (line.dataset["fit"] === measured) return;
    line.dataset["fit"] = measured;
    style.fontSize = `${MEASURED_PX}px`;
    const bestPx = (MEASURED_PX * box.clientWidth) / Math.max(1, line.offsetWidth);
    style.fontSize = `${Math.floor(Math.min(bestPx, innerHeight * heightShare))}px`;
  };
  return (
    // Another function at each drawing, so that it is called each time.
    <Box ref={(box: HTMLElement | null) => fit(box)} class={`fit ${name}`}>
      <span>{text}</span>
    </Box>
  );
}
