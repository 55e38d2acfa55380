/** A station of its own with a virtual companion that runs in this process; every exchange of the companion is kept. */
import { join } from "node:path";
import { vi } from "vitest";
import { createCompanionTurn, isSilentName } from "../../clients/companion-turn.ts";
import { runDevice } from "../../clients/device/loop.ts";
import { createPace } from "../../clients/device/pace.ts";
import { createTransport, type DeviceTransport, ServiceError } from "../../clients/device/transport.ts";
import { clientLimits } from "../../clients/limits.ts";
import type { Person } from "../support/people.ts";

/** One request of the companion and what came of it. */
export interface Exchange {
  readonly atMs: number;
  readonly path: string;
  readonly body: unknown;
  readonly answer: unknown;
  readonly refusal: ServiceError | undefined;
}

export interface RunningCompanion {
  readonly exchanges: readonly Exchange[];
  to(path: string): readonly Exchange[];
  stop(): Promise<void>;
}

export interface Place {
  readonly stationId: number;
  readonly deviceId: number;
  /** The cashier's path of the station. */
  readonly path: string;
  readonly companion: RunningCompanion;
  rename(name: string): Promise<void>;
  /** Stops the companion and starts it anew with its stored credential. */
  restart(): Promise<Place>;
}

export interface PlaceDeps {
  readonly baseUrl: string;
  readonly owner: Person;
  readonly cashier: Person;
  readonly filialId: number;
  /** Where companions keep their credentials. */
  readonly folder: string;
}

/** Registers a station and a companion of this name, and starts the companion; the cashier holds the lease. */
export async function openPlace(deps: PlaceDeps, name: string): Promise<Place> {
  const { owner, cashier, filialId } = deps;
  const station = { filial_id: filialId, name: `Counter of ${name}`, currency: "EUR" };
  const { station_id: stationId } = await owner.good<{ station_id: number }>("POST", "stations/", { body: station });
  const device = { station_id: stationId, name, kind: "smart_pos_companion" };
  const { device_id: deviceId } = await owner.good<{ device_id: number }>("POST", "devices/", { body: device });
  const { code } = await owner.good<{ code: string }>("POST", `devices/${deviceId}/enrollment-codes/`);
  const path = `stations/${stationId}`;
  // The station's actor learns of its device a moment after the registry has answered.
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
        await companion.stop();
        return await start(undefined);
      },
    };
  };
  return await start(code);
}

async function startCompanion(
  { baseUrl, folder }: PlaceDeps,
  deviceId: number,
  enrollmentCode: string | undefined,
): Promise<RunningCompanion> {
  const stopping = new AbortController();
  const exchanges: Exchange[] = [];
  const credentialFile = join(folder, `companion-${deviceId}.json`);
  const { promise: ready, resolve: onReady, reject } = Promise.withResolvers<void>();
  const kind = { name: "companion", createTurn: createCompanionTurn, isSilent: isSilentName };
  const running = runDevice(kind, {
    credentialFile,
    enrollmentCode,
    transport: watched(createTransport({ baseUrl, pace: createPace(clientLimits.requestGapMs) }), exchanges),
    log: { info: () => undefined, warn: () => undefined },
    signal: stopping.signal,
    onReady,
  });
  running.catch(reject);
  await ready;
  return {
    exchanges,
    to: (path) => exchanges.filter((exchange) => exchange.path === path),
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/** The same transport; it writes down what went over it. */
function watched(transport: DeviceTransport, exchanges: Exchange[]): DeviceTransport {
  return {
    async send(request, schema) {
      const atMs = Date.now();
      const { path, body } = request;
      try {
        const answer = await transport.send(request, schema);
        exchanges.push({ atMs, path, body, answer: answer.body, refusal: undefined });
        return answer;
      } catch (error) {
        const refusal = error instanceof ServiceError ? error : undefined;
        exchanges.push({ atMs, path, body, answer: undefined, refusal });
        throw error;
      }
    },
  };
}
