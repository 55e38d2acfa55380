/** The results of the bench of reconciliation as rows of its table. */

import { median } from "../support/percentile.ts";
import { type BenchResult, oneDecimal, wholeNumber } from "./bench-result.ts";
import type { Control, ReconciliationMeasurement, Work } from "./reconciliation.ts";

const GOAL_SHARE = 0.5;
/** A memory counts as flat up to this ratio, because the garbage collector runs at other moments in each process. */
const FLAT = 1.2;
const MEBIBYTE = 1_048_576;
const plain = { goal: "", met: undefined };
const percent = (share: number): string => `${wholeNumber(share * 100)} %`;
const rowsOf = (rows: number): string => `${wholeNumber(rows)} rows`;

const CONTROL_NAMES: Readonly<Record<Control, string>> = {
  plain: "COPY, no index",
  indexed: "COPY, the table's 8 indexes and checks",
};

export function reconciliationResults(measurement: ReconciliationMeasurement): BenchResult[] {
  const { importRows, imported, again, controls } = measurement;
  return [
    shareResult(measurement, "plain"),
    shareResult(measurement, "indexed"),
    cpuResult("CPU per imported row (µs)", imported, controls.indexed),
    {
      name: `the same ${rowsOf(importRows)} again, in other bytes, per second`,
      measured: wholeNumber(again.perSecond),
      control: `first import: ${wholeNumber(imported.perSecond)}`,
      ratio: percent(again.perSecond / imported.perSecond),
      ...plain,
    },
    cpuResult("CPU per row imported again (µs)", again, controls.indexed),
    ...matchingResults(measurement.matching),
    ...memoryResults(measurement.memory),
  ];
}

function shareResult(
  { importRows, imported, controls, shares }: ReconciliationMeasurement,
  control: Control,
): BenchResult {
  const share = median(shares[control]);
  return {
    name: `rows imported per second (${rowsOf(importRows)}, CSV)`,
    measured: wholeNumber(imported.perSecond),
    control: `${CONTROL_NAMES[control]}: ${wholeNumber(controls[control].perSecond)}`,
    ratio: `${percent(share)} (rounds: ${shares[control].map(percent).join(", ")})`,
    goal: "≥ 50 %",
    met: share >= GOAL_SHARE,
  };
}

function cpuResult(name: string, measured: Work, control: Work): BenchResult {
  const textOf = ({ cpuUs, postgresCpuUs }: Work): string =>
    `process ${oneDecimal(cpuUs)}, PostgreSQL ${oneDecimal(postgresCpuUs)}`;
  const total = ({ cpuUs, postgresCpuUs }: Work): number => cpuUs + postgresCpuUs;
  const ratio = `${(total(measured) / total(control)).toFixed(2)} ×`;
  return { name, measured: textOf(measured), control: `${textOf(control)} (indexed)`, ratio, ...plain };
}

function matchingResults(matching: ReconciliationMeasurement["matching"]): BenchResult[] {
  const { rows, seconds, againSeconds, joinSeconds, cpuUs } = matching;
  const name = `${wholeNumber(rows)} lines matched against as many payments`;
  return [
    {
      name: `${name} (s)`,
      measured: oneDecimal(seconds),
      control: `bare join that stores the pairs: ${joinSeconds.toFixed(2)}`,
      ratio: `${oneDecimal(seconds / joinSeconds)} ×`,
      ...plain,
    },
    {
      name: `${name} again, nothing new (s)`,
      measured: oneDecimal(againSeconds),
      control: `first run: ${oneDecimal(seconds)}`,
      ratio: percent(againSeconds / seconds),
      ...plain,
    },
    {
      name: "PostgreSQL's CPU per matched line (µs)",
      measured: oneDecimal(cpuUs),
      control: "",
      ratio: "",
      ...plain,
    },
  ];
}

/** The memory of each file beside that of the shortest one. The goal is that memory does not grow with the file. */
function memoryResults(memory: ReconciliationMeasurement["memory"]): BenchResult[] {
  const smallest = memory[0]?.peakBytes ?? Number.NaN;
  return memory.map(({ rows, peakBytes, seconds }, at) => ({
    name: `peak memory of the process that imports ${rowsOf(rows)} (MiB; in ${oneDecimal(seconds)} s)`,
    measured: wholeNumber(peakBytes / MEBIBYTE),
    control: at === 0 ? "" : `${rowsOf(memory[0]?.rows ?? 0)}: ${wholeNumber(smallest / MEBIBYTE)}`,
    ratio: at === 0 ? "" : `${(peakBytes / smallest).toFixed(2)} ×`,
    goal: at === 0 ? "" : `≤ ${FLAT} ×`,
    met: at === 0 ? undefined : peakBytes <= smallest * FLAT,
  }));
}
