/** Rendered views by credential slot, made when a device first asks and again when its station has moved on. */
import type { KillSwitches } from "../../machines/standing.ts";
import { type StationCell, type StationReplica, stateOf } from "../replica/station-replica.ts";
import type { PollName } from "./poll-name.ts";
import { type Rendered, render } from "./rendered.ts";

/** Views of one device. The ids tell whether the slot still is this device's. */
interface DeviceViews {
  readonly deviceId: number;
  readonly stationId: number;
  readonly cell: StationCell;
  display: Rendered | undefined;
  self: Rendered | undefined;
  assignment: Rendered | undefined;
}

/**
 * Devices whose views are kept, about 1 KB each; a further one takes the place of another. A display that polls every
 * two seconds stays in, a device that was silent for long is rendered anew.
 */
const MAX_DEVICES_RENDERED = 250_000;

export interface ViewCacheDeps {
  readonly stations: Pick<StationReplica, "cell">;
  switches(): KillSwitches;
  readonly maxDevices?: number;
}

export class ViewCache {
  readonly #deps: ViewCacheDeps;
  readonly #maxDevices: number;
  readonly #views: (DeviceViews | undefined)[] = [];
  #count = 0;
  #hand = 0;

  constructor(deps: ViewCacheDeps) {
    this.#deps = deps;
    this.#maxDevices = deps.maxDevices ?? MAX_DEVICES_RENDERED;
  }

  /** How many devices have views in memory. */
  get size(): number {
    return this.#count;
  }

  /**
   * The current view; undefined when the station does not have the device. The parameters stand one by one because this
   * is called for every poll and an object for them would be made and thrown away each time.
   */
  view(name: PollName, slot: number, deviceId: number, stationId: number, nowMs: number): Rendered | undefined {
    const switches = this.#deps.switches();
    const views = this.#views[slot];
    if (views !== undefined && views.deviceId === deviceId && views.stationId === stationId) {
      const view = views[name];
      if (
        view !== undefined &&
        view.commit === views.cell.commit &&
        view.switches === switches &&
        nowMs >= view.madeAtMs &&
        nowMs < view.validUntilMs
      ) {
        return view;
      }
    }
    return this.#render(name, slot, deviceId, stationId, nowMs);
  }

  #render(name: PollName, slot: number, deviceId: number, stationId: number, nowMs: number): Rendered | undefined {
    const cell = this.#deps.stations.cell(stationId);
    if (cell?.commit === undefined) return undefined;
    const { commit } = cell;
    const view = render(name, stateOf(commit), deviceId, { commit, switches: this.#deps.switches(), nowMs });
    this.#viewsOf(slot, deviceId, stationId, cell)[name] = view;
    return view;
  }

  #viewsOf(slot: number, deviceId: number, stationId: number, cell: StationCell): DeviceViews {
    const known = this.#views[slot];
    if (known?.deviceId === deviceId && known.stationId === stationId && known.cell === cell) return known;
    if (known === undefined) {
      if (this.#count >= this.#maxDevices) this.#evict();
      this.#count += 1;
    }
    while (this.#views.length <= slot) this.#views.push(undefined);
    const views = { deviceId, stationId, cell, display: undefined, self: undefined, assignment: undefined };
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
