/** The telemetry of a heartbeat, for the service's operators. It never prevents the heartbeat. */
import { KIT_LIMITS } from "./limits.ts";

/** Leaves out the integrator's part when it throws, or when the service would refuse the whole as too large or too deep. */
export function telemetryOf(summary: (() => object) | undefined, ofKit: object): object {
  try {
    const whole = { ...summary?.(), ...ofKit };
    const bytes = new TextEncoder().encode(JSON.stringify(whole)).length;
    if (bytes <= KIT_LIMITS.summaryMaxBytes && levelsOf(whole) <= KIT_LIMITS.summaryMaxLevels) return whole;
  } catch {
    // It has thrown, or is no JSON.
  }
  return { ...ofKit, left_out: "summary" };
}

const levelsOf = (value: unknown): number =>
  typeof value === "object" && value !== null ? 1 + Math.max(0, ...Object.values(value).map(levelsOf)) : 0;
