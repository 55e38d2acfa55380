/** What a check is, and what came of one. */
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
  /** The contract's own words, from one sentence or table row each. */
  readonly quotes: readonly [string, ...string[]];
  /** Checks whose steps this one builds on: it does not run when one of them did not pass. */
  readonly after?: readonly string[];
  /** Throws `Mismatch` where the service does not keep the contract. */
  readonly run: (world: TWorld) => Promise<void>;
}

/** What the checks of one file share in one run; several runs may go on in one process. */
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
  /** Of a failed check. */
  readonly failure?: {
    readonly what: string;
    readonly expected: string;
    readonly actual: string;
    readonly curl: string;
  };
  /** Of a check that did not run: why. */
  readonly because?: string;
}
