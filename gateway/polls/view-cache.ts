/** Rendered views by credential slot, made when a device first asks and again when its station has moved on. */
import type { KillSwitches } from "../../machines/standing.ts";
import { stateOf } from "../replica/station-replica.ts";
import type { PollName } from "./poll-name.ts";
import { type Rendered, render } from "./rendered.ts";

/** Views of one device. The device id tells whether the slot still is this device's. */
interface DeviceViews {
  readonly deviceId: number;
  display: Rendered | undefined;
  self: Rendered | undefined;
  assignment: Rendered | undefined;
}

/**
 * Devices whose views are kept, about 1 KB each; a further one takes the place of another. A display that polls every
 * two seconds stays in, a device that was silent for long is rendered anew.
 */
const MAX_DEVICES_RENDERED = 250_000;

export class ViewCache {
  readonly #views: (DeviceViews | undefined)[] = [];
  readonly #maxDevices: number;
  #count = 0;
  #hand = 0;

  constructor(maxDevices: number = MAX_DEVICES_RENDERED) {
    this.#maxDevices = maxDevices;
  }

  /** How many devices have views in memory. */
  get size(): number {
    return this.#count;
  }

  /**
   * The current view; undefined when the station does not have the device. The parameters stand one by one because this
   * is called for every poll and an object for them would be made and thrown away each time.
   */
  view(
    name: PollName,
    slot: number,
    deviceId: number,
    commit: Uint8Array,
    switches: KillSwitches,
    nowMs: number,
  ): Rendered | undefined {
    const views = this.#views[slot];
    if (views !== undefined && views.deviceId === deviceId) {
      const view = views[name];
      if (
        view !== undefined &&
        view.commit === commit &&
        view.switches === switches &&
        nowMs >= view.madeAtMs &&
        nowMs < view.validUntilMs
      ) {
        return view;
      }
    }
    const made = render(name, stateOf(commit), deviceId, { commit, switches, nowMs });
    this.#viewsOf(slot, deviceId)[name] = made;
    return made;
  }

  #viewsOf(slot: number, deviceId: number): DeviceViews {
    const known = this.#views[slot];
    if (known !== undefined && known.deviceId === deviceId) return known;
    if (known === undefined) {
      if (this.#count >= this.#maxDevices) this.#evict();
      this.#count += 1;
    }
    while (this.#views.length <= slot) this.#views.push(undefined);
    const views: DeviceViews = { deviceId, display: undefined, self: undefined, assignment: undefined };
    this.#views[slot] = views;
    return views;
  }

  /** Slots are in the order of a hash, so going round takes any device as likely as another. */
  #evict(): void {
    while (this.#count > 0) {
      const slot = this.#hand;
      this.#hand = (slot + 1) % this.#views.length;
      if (this.#views[slot] === undefined) continue;
      this.#views[slot] = undefined;
      this.#count -= 1;
      return;
    }
  }
}
