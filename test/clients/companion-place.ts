/** A station with a virtual companion in this process. The place records every request of the companion and its answer. */
import { join } from "node:path";
import { vi } from "vitest";
import { hostPlatform, type Platform } from "../../clients/device-kit/platform.ts";
import type { DeviceRecord } from "../../clients/device-kit/record.ts";
import { fileStorage } from "../../clients/device-kit/storage/file.ts";
import { isReady, magicCompanion } from "../../clients/magic-companion.ts";
import { newCode } from "../support/devices.ts";
import type { Person } from "../support/people.ts";
import { QUIET } from "../support/quiet-log.ts";

/** One request of the companion and its answer. */
export interface Exchange {
  readonly atMs: number;
  readonly path: string;
  readonly body: unknown;
  /** Undefined when there was no answer, and for a 304. */
  readonly answer: unknown;
  readonly status: number | undefined;
}

export interface RunningCompanion {
  readonly exchanges: readonly Exchange[];
  to(path: string): readonly Exchange[];
  stored(): DeviceRecord | null;
  stop(): void;
}

export interface Place {
  readonly stationId: number;
  readonly deviceId: number;
  /** The path of the station in the cashier's API. */
  readonly path: string;
  readonly companion: RunningCompanion;
  rename(name: string): Promise<void>;
  /** Stops the companion and starts it again with its stored credential. */
  restart(): Promise<Place>;
}

export interface PlaceDeps {
  readonly baseUrl: string;
  readonly owner: Person;
  readonly cashier: Person;
  readonly filialId: number;
  /** The folder in which companions store their credentials. */
  readonly folder: string;
}

/** Registers a station and a companion with this name, and starts the companion. The cashier acquires the lease. */
export async function openPlace(deps: PlaceDeps, name: string): Promise<Place> {
  const { owner, cashier, filialId } = deps;
  const station = { filial_id: filialId, name: `Counter of ${name}`, currency: "EUR" };
  const { station_id: stationId } = await owner.good<{ station_id: number }>("POST", "stations/", { body: station });
  const device = { station_id: stationId, name, kind: "smart_pos_companion" };
  const { device_id: deviceId } = await owner.good<{ device_id: number }>("POST", "devices/", { body: device });
  const code = await newCode(owner, deviceId);
  const path = `stations/${stationId}`;
  // The station's actor receives the device a moment after the registry's answer.
  await vi.waitFor(() => cashier.good("POST", `${path}/lease/`), { timeout: 60_000, interval: 250 });
  const start = async (enrollmentCode: string | undefined): Promise<Place> => {
    const companion = await startCompanion(deps, deviceId, enrollmentCode);
    return {
      stationId,
      deviceId,
      path,
      companion,
      rename: async (newName) => {
        await owner.good("PATCH", `devices/${deviceId}/`, { body: { name: newName } });
      },
      restart: async () => {
        companion.stop();
        return await start(undefined);
      },
    };
  };
  return await start(code);
}

async function startCompanion(
  { baseUrl, folder }: PlaceDeps,
  deviceId: number,
  code: string | undefined,
): Promise<RunningCompanion> {
  const stopping = new AbortController();
  const exchanges: Exchange[] = [];
  const { promise: ready, resolve: onReady } = Promise.withResolvers<void>();
  const device = magicCompanion(
    {
      baseUrl,
      storage: fileStorage(join(folder, `companion-${deviceId}.json`)),
      code,
      platform: watched(exchanges),
      onState: (state) => (isReady(state) ? onReady() : undefined),
    },
    { log: QUIET, signal: stopping.signal },
  );
  await ready;
  return {
    exchanges,
    to: (path) => exchanges.filter((exchange) => exchange.path === path),
    stored: () => device.state().record,
    stop() {
      device.stop();
      stopping.abort();
    },
  };
}

/** The platform of Node, which here also records the requests and their answers. */
function watched(exchanges: Exchange[]): Platform {
  const host = hostPlatform();
  return {
    ...host,
    async fetch(url, init) {
      const asked = {
        atMs: Date.now(),
        path: url.slice(url.indexOf("devices/")),
        body: typeof init.body === "string" ? (JSON.parse(init.body) as unknown) : undefined,
      };
      try {
        const response = await host.fetch(url, init);
        const text = await response.clone().text();
        exchanges.push({ ...asked, answer: text === "" ? undefined : JSON.parse(text), status: response.status });
        return response;
      } catch (error) {
        exchanges.push({ ...asked, answer: undefined, status: undefined });
        throw error;
      }
    },
  };
}
