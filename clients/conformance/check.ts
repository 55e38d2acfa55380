/** The types of a check and of its result. */
import type { World } from "./world.ts";

/** A check belongs to the capability that a device or the service needs for it. */
export const CAPABILITIES = [
  "enrollment",
  "presence",
  "handoff_present",
  "outcome_report",
  "display_total",
  "qr_dynamic_present",
  "settlement",
  "kill_switches",
] as const;
export type Capability = (typeof CAPABILITIES)[number];

export interface Check<TWorld = World> {
  /** Stable, for programs: `<topic>.<what holds>`. */
  readonly id: string;
  readonly capability: Capability;
  /** Quotes of the contract, each from one sentence or table row. */
  readonly quotes: readonly [string, ...string[]];
  /** Checks that this one depends on: it does not run unless all of them have passed. */
  readonly after?: readonly string[];
  /** Throws `Mismatch` when the service does not keep the contract. */
  readonly run: (world: TWorld) => Promise<void>;
}

/** A value that the checks of one file share within one run: one process may have several runs. */
export function perRun<T extends object>(begin: () => T): (world: object) => T {
  const byWorld = new WeakMap<object, T>();
  return (world) => {
    const known = byWorld.get(world) ?? begin();
    byWorld.set(world, known);
    return known;
  };
}

export type Outcome = "passed" | "failed" | "not_run";

export interface CheckResult {
  readonly id: string;
  readonly capability: Capability;
  readonly quotes: readonly string[];
  readonly outcome: Outcome;
  readonly durationMs: number;
  /** Set for a failed check. */
  readonly failure?: {
    readonly what: string;
    readonly expected: string;
    readonly actual: string;
    readonly curl: string;
  };
  /** Why the check did not run. */
  readonly because?: string;
}
