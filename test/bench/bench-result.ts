/** One line of the bench's table: a measured value beside the value of its control and its goal (docs/speed.md). */
export interface BenchResult {
  readonly name: string;
  readonly measured: string;
  readonly control: string;
  readonly ratio: string;
  readonly goal: string;
  /** Undefined for a result without a goal. */
  readonly met: boolean | undefined;
}

/** Prints the results as a table with aligned columns. */
export function table(results: readonly BenchResult[]): string {
  const head = {
    name: "result",
    measured: "measured",
    control: "control",
    ratio: "ratio",
    goal: "goal",
    met: undefined,
  };
  const rows = [head, ...results].map((row, index) => [
    row.name,
    row.measured,
    row.control,
    row.ratio,
    row.goal,
    index === 0 ? "met" : row.met === undefined ? "" : row.met ? "yes" : "no",
  ]);
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  return [lines[0], widths.map((width) => "-".repeat(width)).join("  "), ...lines.slice(1)].join("\n");
}

export const oneDecimal = (value: number): string => value.toFixed(1);
export const wholeNumber = (value: number): string => Math.round(value).toLocaleString("en");
