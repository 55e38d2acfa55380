/** The telemetry of a heartbeat, for the service's operators. It never prevents the heartbeat. */
import { KIT_LIMITS } from "./limits.ts";

/** Leaves out the integrator's part when it throws, or when the service would refuse the whole as too large or too deep. */
export function telemetryOf(summary: (() => object) | undefined, ofKit: object): object {
  try {
    const text = JSON.stringify({ ...summary?.(), ...ofKit });
    const whole = JSON.parse(text) as object;
    if (bytesOf(text) <= KIT_LIMITS.summaryMaxBytes && depthOf(whole) <= KIT_LIMITS.summaryMaxLevels) return whole;
    return { ...ofKit, left_out: "summary: too large or too deep" };
  } catch {
    return { ...ofKit, left_out: "summary: failed" };
  }
}

/** The length in UTF-8. An old WebView has no `TextEncoder`. */
const bytesOf = (text: string): number => encodeURIComponent(text).replace(/%../g, "-").length;

function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const inner = Object.keys(value).map((name) => depthOf((value as Record<string, unknown>)[name]));
  return 1 + Math.max(0, ...inner);
}
