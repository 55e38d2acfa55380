/** Reads and replays the golden traces of the device kit, and reads the rows of its SPEC. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { companionStep, firstCompanionState } from "../../../clients/device-kit/companion-machine.ts";
import { displayStep, firstDisplayState } from "../../../clients/device-kit/display-machine.ts";

const KIT = join(import.meta.dirname, "..", "..", "..", "clients", "device-kit");
export const TRACES = join(KIT, "traces");

export interface Effect {
  readonly type: string;
  readonly timer?: string;
}
export interface Regions {
  readonly phase: string;
  readonly heartbeat: string;
  readonly work: string;
  readonly reporter?: string;
}
export interface TraceStep {
  /** The time on the device's monotonic clock, in milliseconds. */
  readonly at: number;
  /** Default: 0.5. */
  readonly random?: number;
  /** The key that the device would use. Default: `key-<number of the step>`. */
  readonly key?: string;
  readonly event: { readonly type: string; readonly timer?: string };
  /** The rows of SPEC.md that explain the step. */
  readonly rows: readonly string[];
  readonly effects?: readonly Effect[];
  readonly regions?: Regions;
}
export interface Trace {
  readonly machine: "companion" | "display";
  readonly story: string;
  /** For a companion: whether its payment application can return the outcome of an earlier payment. */
  readonly can_ask?: boolean;
  readonly steps: readonly TraceStep[];
}
/** A step with the result of the machine. */
export interface Replayed {
  readonly step: TraceStep;
  readonly before: Regions;
  readonly after: Regions;
  readonly effects: readonly Effect[];
}

export const traceFiles: readonly string[] = ["companion", "display"].flatMap((kind) =>
  readdirSync(join(TRACES, kind)).map((file) => `${kind}/${file}`),
);
export const readTrace = (file: string): Trace => JSON.parse(readFileSync(join(TRACES, file), "utf8")) as Trace;

function regionsOf(state: object): Regions {
  const { phase, heartbeat, work, reporter } = state as Regions;
  return { phase, heartbeat, work, ...(reporter === undefined ? {} : { reporter }) };
}

export function replay({ machine, can_ask: canAsk = false, steps }: Trace): readonly Replayed[] {
  let state: object = machine === "companion" ? firstCompanionState(canAsk) : firstDisplayState();
  const take = (machine === "companion" ? companionStep : displayStep) as (
    state: object,
    event: object,
    input: object,
  ) => { readonly state: object; readonly effects: readonly Effect[] };
  return steps.map((step, index) => {
    const before = state;
    const { at: atMs, random = 0.5, key = `key-${index}` } = step;
    const taken = take(deepFrozen(state), deepFrozen(step.event), { atMs, random, key });
    state = taken.state;
    return { step, before: regionsOf(before), after: regionsOf(state), effects: taken.effects };
  });
}

/** Freezes the input of a step, so that a step that changes its input throws. */
function deepFrozen<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    Object.freeze(value);
    Object.values(value).forEach(deepFrozen);
  }
  return value;
}

export interface SpecRow {
  readonly id: string;
  readonly region: keyof Regions;
  readonly from: string;
  readonly to: string;
  /** The type of the event, with the name of the timer if it is one. */
  readonly event: string;
  readonly effects: readonly string[];
}

export function specRows(): readonly SpecRow[] {
  const spec = readFileSync(join(KIT, "SPEC.md"), "utf8");
  const pattern = /^\| ([A-Z]\d+) \| (\w+): (\w+) → (\w+) \| ([\w ]+) \|[^|]*\| ?([^|]*)\|$/gm;
  return [...spec.matchAll(pattern)].map(([, id = "", region, from = "", to = "", event = "", effects = ""]) => ({
    id,
    region: region as keyof Regions,
    from,
    to,
    event: event.trim(),
    effects: effects.trim() === "" ? [] : effects.trim().split(", "),
  }));
}

export const nameOf = ({ type, timer }: Effect): string => (type === "timer" ? `timer ${timer}` : type);
