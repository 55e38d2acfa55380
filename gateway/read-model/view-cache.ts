/** Rendered views by credential slot. The cache makes a view at a device's first request and after each commit of its station. */
import type { KillSwitches } from "../../machines/standing.ts";
import { LIMITS } from "../limits.ts";
import { type PollName, type Rendered, type RenderedText, render } from "./rendered.ts";
import { type StationCell, type StationReplica, stateOf } from "./station-replica.ts";

/** The display texts of one station's commit: one for displays that render QR payloads, one for those that do not. */
interface DisplayTexts {
  readonly commit: Uint8Array;
  withQr: RenderedText | undefined;
  withoutQr: RenderedText | undefined;
}

/** Views of one device. The ids show whether the slot still belongs to this device. */
interface DeviceViews {
  readonly deviceId: number;
  readonly stationId: number;
  readonly cell: StationCell;
  display: Rendered | undefined;
  self: Rendered | undefined;
  assignment: Rendered | undefined;
}

interface ViewCacheDeps {
  readonly stations: Pick<StationReplica, "cell">;
  switches(): KillSwitches;
  readonly maxDevices?: number;
}

export class ViewCache {
  readonly #deps: ViewCacheDeps;
  readonly #maxDevices: number;
  readonly #views: (DeviceViews | undefined)[] = [];
  /** The display texts of stations with a rendered device. All displays of a station share them. */
  readonly #displays = new Map<StationCell, DisplayTexts>();
  #count = 0;
  #hand = 0;

  constructor(deps: ViewCacheDeps) {
    this.#deps = deps;
    this.#maxDevices = deps.maxDevices ?? LIMITS.devicesRendered;
  }

  /** How many devices have views in memory. */
  get size(): number {
    return this.#count;
  }

  /** How many display texts are in memory: at most two per station. */
  get displayTexts(): number {
    let count = 0;
    for (const { withQr, withoutQr } of this.#displays.values()) {
      count += (withQr === undefined ? 0 : 1) + (withoutQr === undefined ? 0 : 1);
    }
    return count;
  }

  /**
   * The current view; undefined when the station does not have the device. There is no parameter object, because every poll
   * would allocate one.
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

  /**
   * Why there is no view of a device with a known credential. Either the owner has revoked the device, and the credential is about
   * to be removed too, or the bus has lost the station's log and the station does not have the device again yet.
   */
  whyNone(deviceId: number, stationId: number): "credential_invalid" | "replica_stale" {
    const commit = this.#deps.stations.cell(stationId)?.commit;
    const isRevoked = commit !== undefined && stateOf(commit).revokedDevices.includes(deviceId);
    return isRevoked ? "credential_invalid" : "replica_stale";
  }

  #render(name: PollName, slot: number, deviceId: number, stationId: number, nowMs: number): Rendered | undefined {
    const cell = this.#deps.stations.cell(stationId);
    if (cell?.commit === undefined) return undefined;
    const { commit } = cell;
    const views = this.#viewsOf(slot, deviceId, stationId, cell);
    const view = render(name, stateOf(commit), deviceId, {
      commit,
      switches: this.#deps.switches(),
      nowMs,
      displayText: (rendersQr, make) => this.#displayText(cell, commit, nowMs, { rendersQr, make }),
    });
    // A new view alone does not show that the device reads its answers.
    if (view !== undefined) view.unchangedInARow = views[name]?.unchangedInARow ?? 0;
    views[name] = view;
    return view;
  }

  #displayText(
    cell: StationCell,
    commit: Uint8Array,
    nowMs: number,
    wanted: { readonly rendersQr: boolean; readonly make: () => RenderedText },
  ): RenderedText {
    let texts = this.#displays.get(cell);
    if (texts?.commit !== commit) {
      texts = { commit, withQr: undefined, withoutQr: undefined };
      this.#displays.set(cell, texts);
    }
    const variant = wanted.rendersQr ? "withQr" : "withoutQr";
    const known = texts[variant];
    if (known !== undefined && nowMs >= known.madeAtMs && nowMs < known.validUntilMs) return known;
    const text = wanted.make();
    texts[variant] = text;
    return text;
  }

  #viewsOf(slot: number, deviceId: number, stationId: number, cell: StationCell): DeviceViews {
    const known = this.#views[slot];
    if (known?.deviceId === deviceId && known.stationId === stationId && known.cell === cell) return known;
    if (known !== undefined) this.#displays.delete(known.cell);
    else {
      if (this.#count >= this.#maxDevices) this.#evict();
      this.#count += 1;
    }
    while (this.#views.length <= slot) this.#views.push(undefined);
    const views = { deviceId, stationId, cell, display: undefined, self: undefined, assignment: undefined };
    this.#views[slot] = views;
    return views;
  }

  /** Slots are in the order of a hash, so each device is equally likely to be evicted. */
  #evict(): void {
    while (this.#count > 0) {
      const slot = this.#hand;
      this.#hand = (slot + 1) % this.#views.length;
      const views = this.#views[slot];
      if (views === undefined) continue;
      // Another display of the station keeps its view. The cache makes the shared text again at the next request.
      this.#displays.delete(views.cell);
      this.#views[slot] = undefined;
      this.#count -= 1;
      return;
    }
  }
}
