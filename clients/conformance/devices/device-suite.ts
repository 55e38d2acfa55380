/** Runs the checks of a device: the suite is the cashier and the owner, and a real device acts. */
import { CAPABILITIES, type Capability, type CheckResult } from "../check.ts";
import { atSandbox, chosen, type RunOptions, type RunResult, runChecks } from "../suite.ts";
import { CannotRun } from "../world.ts";
import { DEVICE_CHECKS } from "./checks.ts";
import type { DeviceUnderTest } from "./device.ts";
import { type DeviceKind, DeviceWorld } from "./device-world.ts";
import { Observer } from "./observer.ts";

/** The capabilities that every device needs. */
const COMMON: readonly Capability[] = ["enrollment", "presence"];

export interface DeviceRunOptions extends RunOptions {
  readonly kind: DeviceKind;
  readonly device: DeviceUnderTest;
  /** The address at which the device reaches the suite. */
  readonly listen: { readonly host: string; readonly port: number };
  /** Checks only these capabilities and those that they depend on; all by default. Enrollment and presence are always checked. */
  readonly capabilities?: readonly string[];
}

export interface DeviceRunResult extends RunResult {
  readonly kind: DeviceKind;
  readonly deviceId: number;
  readonly stationId: number;
  readonly startedAt: Date;
  readonly endedAt: Date;
  /** Whether the run covers all checks of this kind of device. */
  readonly isWhole: boolean;
  readonly capabilities: readonly CapabilityResult[];
  /** The software as the person who runs the suite names it; null for a part that they did not name. */
  readonly software: Software;
}

export interface Software {
  readonly provider: string | null;
  readonly model: string | null;
  readonly version: string | null;
  /** The hash of the build, in hexadecimal digits. */
  readonly sha256: string | null;
}

export interface CapabilityResult {
  readonly capability: Capability;
  readonly outcome: CheckResult["outcome"];
}

/** Throws `CannotRun` or `NoAnswer` when the suite cannot begin. */
export async function runDeviceSuite(options: DeviceRunOptions): Promise<Omit<DeviceRunResult, "software">> {
  const { kind, device, listen, only, capabilities, onResult } = options;
  const startedAt = new Date();
  let observer: Observer | undefined;
  try {
    const checks = chosen(ofCapabilities(DEVICE_CHECKS[kind], capabilities), only);
    const listening = await Observer.start({ baseUrl: options.baseUrl.replace(/\/+$/, ""), ...listen });
    observer = listening;
    const { done, leftBehind } = await atSandbox(options, async (world) => {
      const deviceWorld = new DeviceWorld({ world, device, observer: listening, kind });
      try {
        const results = await runChecks(deviceWorld, checks, onResult);
        return { results, deviceId: deviceWorld.deviceId, stationId: world.sandbox.stationId };
      } finally {
        await device.stop();
      }
    });
    const endedAt = new Date();
    return {
      kind,
      ...done,
      leftBehind,
      startedAt,
      endedAt,
      durationMs: endedAt.getTime() - startedAt.getTime(),
      isWhole: only === undefined,
      capabilities: capabilitiesOf(done.results),
    };
  } finally {
    // Also when the run could not begin: otherwise the device, such as a person's terminal, keeps this process alive.
    await device.stop();
    await observer?.stop();
  }
}

/** The checks of the capabilities, and the checks that these depend on. */
export function ofCapabilities<
  TCheck extends Pick<CheckResult, "id" | "capability"> & { readonly after?: readonly string[] },
>(checks: readonly TCheck[], capabilities: readonly string[] | undefined): readonly TCheck[] {
  if (capabilities === undefined) return checks;
  const wanted = new Set<string>([...COMMON, ...capabilities]);
  for (const name of capabilities) {
    if (!checks.some(({ capability }) => capability === name))
      throw new CannotRun(`This kind of device has no capability "${name}".`);
  }
  for (let before = 0; before < wanted.size; ) {
    before = wanted.size;
    const needed = checks.filter(({ capability }) => wanted.has(capability)).flatMap(({ after = [] }) => after);
    for (const { id, capability } of checks) if (needed.includes(id)) wanted.add(capability);
  }
  return checks.filter(({ capability }) => wanted.has(capability));
}

/** A capability has passed only when all of its checks have passed. */
function capabilitiesOf(results: readonly CheckResult[]): readonly CapabilityResult[] {
  return CAPABILITIES.flatMap((capability) => {
    const outcomes = results.filter((each) => each.capability === capability).map(({ outcome }) => outcome);
    if (outcomes.length === 0) return [];
    const outcome = outcomes.includes("failed") ? "failed" : outcomes.includes("not_run") ? "not_run" : "passed";
    return [{ capability, outcome }];
  });
}
