/** How a device says that it is there, and learns by the answer what its owner calls it now. */
import type { DeviceClient } from "./device-client.ts";
import type { DeviceSnapshot } from "./device-contract.ts";

export interface CheckIn {
  /** The newest name that the service has reported. */
  name(): string;
  /** One heartbeat. When the name asks for silence: one read of the device's snapshot, which makes no device live. */
  once(signal: AbortSignal): Promise<DeviceSnapshot>;
  /** From now on the device plays offline for that long: no heartbeat is due. */
  beQuiet(forMs: number): void;
  /** How long it still does. */
  quietMs(): number;
}

export function createCheckIn(deps: {
  readonly client: DeviceClient;
  readonly firstName: string;
  /** Whether a device of this name sends no heartbeats. */
  readonly isSilent: (name: string) => boolean;
}): CheckIn {
  const { client, isSilent } = deps;
  const startedAtMs = performance.now();
  let name = deps.firstName;
  let quietUntilMs = 0;
  return {
    name: () => name,
    async once(signal) {
      const uptime = Math.round((performance.now() - startedAtMs) / 1_000);
      const snapshot = isSilent(name) ? await client.me(signal) : await client.heartbeat({ uptime_s: uptime }, signal);
      name = snapshot.name;
      return snapshot;
    },
    beQuiet(forMs) {
      quietUntilMs = performance.now() + forMs;
    },
    quietMs: () => Math.max(0, quietUntilMs - performance.now()),
  };
}
