/** One line of the bench's table: what was measured, beside its control and the goal of the design, §8. */
export interface Figure {
  readonly name: string;
  readonly measured: string;
  readonly control: string;
  readonly ratio: string;
  readonly goal: string;
  /** Undefined for a figure without a goal. */
  readonly met: boolean | undefined;
}

/** The figures as a table of aligned columns. */
export function table(figures: readonly Figure[]): string {
  const head = {
    name: "figure",
    measured: "measured",
    control: "control",
    ratio: "ratio",
    goal: "goal",
    met: undefined,
  };
  const rows = [head, ...figures].map((row, index) => [
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
