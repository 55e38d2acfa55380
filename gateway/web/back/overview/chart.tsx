/** Collections per hour as bars: all collections in the back, the paid ones in front. */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { language } from "../../shared/language.ts";
import { words } from "./words.ts";

export interface ChartProps {
  readonly collections: readonly number[];
  readonly paid: readonly number[];
  readonly label: string;
}

const HEIGHT = 224;
const FULL_BAR = 0.8;
const HOURS_HEIGHT = 24;

const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function Chart({ collections, paid, label }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const drawn = useRef<uPlot | null>(null);
  const data: uPlot.AlignedData = [collections.map((_unused, hour) => hour), [...collections], [...paid]];
  const chosen = language.value;
  useEffect(() => {
    const box = place.current;
    if (box === null) return;
    const draw = (): void => {
      drawn.current?.destroy();
      drawn.current = new uPlot(optionsFor(box.clientWidth), data, box);
    };
    draw();
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", draw);
    addEventListener("resize", draw);
    return () => {
      scheme.removeEventListener("change", draw);
      removeEventListener("resize", draw);
      drawn.current?.destroy();
      drawn.current = null;
    };
  }, [chosen]);
  useEffect(() => {
    drawn.current?.setData(data);
  }, [collections.join(), paid.join()]);
  return <div ref={place} role="img" aria-label={label} />;
}

function optionsFor(width: number): uPlot.Options {
  const bars = uPlot.paths.bars?.({ size: [FULL_BAR, HEIGHT / 4] });
  const series = (name: string, fill: string): uPlot.Series => ({
    label: name,
    fill,
    stroke: fill,
    width: 0,
    points: { show: false },
    ...(bars === undefined ? {} : { paths: bars }),
  });
  const axis: uPlot.Axis = {
    stroke: colour("--ink-soft"),
    grid: { stroke: colour("--border"), width: 1 },
    ticks: { show: false },
    font: "12px system-ui, sans-serif",
  };
  return {
    width,
    height: HEIGHT,
    cursor: { show: false },
    scales: {
      x: { time: false, range: [-0.5, 23.5] },
      y: { range: (_plot, _least, most) => [0, Math.max(1, most * 1.1)] },
    },
    axes: [
      { ...axis, size: HOURS_HEIGHT, grid: { show: false }, values: (_plot, hours) => hours.map((hour) => `${hour}`) },
      { ...axis, values: (_plot, counts) => counts.map((count) => (Number.isInteger(count) ? `${count}` : "")) },
    ],
    series: [
      { label: words().hour },
      series(words().notPaid, colour("--border-strong")),
      series(words().paid, colour("--accent")),
    ],
    legend: { show: false },
  };
}
