/** The gate for device requests that have a handler: a refusal is thrown, a caller is returned. */

import { type DeviceGate, SHUT, SHUT_CODES } from "../read-model/polls/device-gate.ts";
import type { PollName } from "../read-model/polls/poll-name.ts";
import type { Rendered } from "../read-model/polls/rendered.ts";
import type { ViewCache } from "../read-model/polls/view-cache.ts";
import { scopeBit } from "../read-model/replica/credential-replica.ts";
import { CREDENTIAL_RATE } from "../read-model/throttle/limits.ts";
import { throttleHeaders, waitMs } from "../read-model/throttle/token-bucket.ts";
import type { ErrorCode } from "./errors.ts";
import { type DeviceCaller, Refusal } from "./handler-context.ts";
import type { Blocked } from "./route.ts";
import { DEVICE_SCOPES, type DeviceScope } from "./scopes.ts";

export interface DeviceCheckDeps {
  readonly gate: DeviceGate;
  readonly views: ViewCache;
  nowMs(): number;
}

export class DeviceCheck {
  readonly #deps: DeviceCheckDeps;

  constructor(deps: DeviceCheckDeps) {
    this.#deps = deps;
  }

  /**
   * The device of a credential. Throws `replica_stale`, `credential_missing`, `credential_invalid`, `throttled`,
   * `scope_denied` or, where a blocked device is refused, the reason of its standing. A device that has passed the gate
   * already comes with its slot and is not throttled a second time.
   */
  check(authorization: string, scope: DeviceScope, blocked: Blocked, passed: number | undefined): DeviceCaller {
    const { gate } = this.#deps;
    const nowMs = this.#deps.nowMs();
    const slot = passed ?? gate.pass(authorization, scopeBit(scope), nowMs);
    if (slot < 0) throw this.#shut(slot, nowMs);
    const device = this.#callerOf(slot);
    const view = this.view("self", device, nowMs);
    if (blocked === "refused" && view.blocked !== "") throw new Refusal(view.blocked as ErrorCode);
    return device;
  }

  /**
   * A device's current view. Throws `credential_invalid` when its station has revoked it, `replica_stale` when the station
   * is yet to be told of it.
   */
  view(name: PollName, device: DeviceCaller, nowMs: number): Rendered {
    const { views } = this.#deps;
    const { slot, deviceId, stationId } = device;
    const view = views.view(name, slot, deviceId, stationId, nowMs);
    if (view === undefined) throw new Refusal(views.whyNone(deviceId, stationId));
    return view;
  }

  #callerOf(slot: number): DeviceCaller {
    const { table } = this.#deps.gate;
    const mask = table.scopeMask(slot);
    return {
      slot,
      deviceId: table.deviceId(slot),
      stationId: table.stationId(slot),
      scopes: DEVICE_SCOPES.filter((scope) => (mask & scopeBit(scope)) !== 0),
    };
  }

  #shut(shut: number, nowMs: number): Refusal {
    const code = SHUT_CODES[shut] as ErrorCode;
    if (shut !== SHUT.throttled) return new Refusal(code);
    const retryAfterMs = waitMs(CREDENTIAL_RATE, this.#deps.gate.throttledUntilFullAtMs, nowMs);
    return new Refusal(code, { headers: throttleHeaders("credential", CREDENTIAL_RATE, retryAfterMs) });
  }
}
