/** A NATS server, a database and audit services, with stations whose commits the test writes. */

import { expect, vi } from "vitest";
import type { z } from "zod";
import { startAuditService } from "../../services/audit/service.ts";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import type { Caller } from "../../services/bus/messages/caller.ts";
import { getIntentTimeline } from "../../services/bus/messages/timelines.ts";
import { call, type Operation, type ReplyOf, type SentRequestOf } from "../../services/bus/operation.ts";
import type { StationLogs } from "../../services/bus/streams.ts";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { createLog, type Log } from "../../services/runtime/log.ts";
import type { Service } from "../../services/runtime/service.ts";
import { HOLDS_LOCKS } from "../support/held-locks.ts";
import { ONE_LOG } from "../support/one-log.ts";
import { prepareBus } from "../support/prepared-bus.ts";
import { cloneDatabase, startNats } from "../support/servers.ts";
import { ScriptedStation } from "./scripted-station.ts";

const UNTIL_COPIED = { timeout: 20_000, interval: 10 } as const;

export type AuditWorld = Awaited<ReturnType<typeof startAuditWorld>>;

export async function startAuditWorld(logs: StationLogs = ONE_LOG) {
  const nats = await startNats();
  const testDatabase = await cloneDatabase();
  const silent = createLog({ service: "audit", level: "silent" });
  const bus = await connectBus({ url: nats.url, name: "test", log: silent });
  await prepareBus(nats.url, testDatabase.url, { logs: logs.count });
  const database = openDatabase({ ...HOLDS_LOCKS, url: testDatabase.url });
  const services: Service[] = [];
  const ownerOf = ({ facts }: ScriptedStation): Caller => ({
    userId: 99,
    name: "Olga",
    organizationId: facts.organizationId,
    role: "owner",
    permissions: ["organization.manage"],
  });
  return {
    nats,
    databaseUrl: testDatabase.url,
    bus,
    database,
    ownerOf,
    /** Starts an audit service on a separate connection. Its `stop` may be called twice. */
    async startAudit({ log = silent, databaseUrl = testDatabase.url }: { log?: Log; databaseUrl?: string } = {}) {
      const serviceBus = await connectBus({ url: nats.url, name: "audit", log: silent });
      const settings = { natsUrl: nats.url, databaseUrl, logLevel: "silent" as const };
      const started = await startAuditService({ bus: serviceBus, logs, log, settings, environment: {} });
      let stopped: Promise<void> | undefined;
      const service: Service = {
        stop: () => (stopped ??= started.stop().then(() => serviceBus.close())),
      };
      services.push(service);
      return service;
    },
    /** A station in a new organization, with a companion and without commits. */
    newStation: () => newStation(bus, database, logs),
    openStation: async () => await (await newStation(bus, database, logs)).open(),
    /** The timeline that the owner of the station reads. */
    timelineOf: (station: ScriptedStation, intentId: number) =>
      call(bus.nc, getIntentTimeline, { caller: ownerOf(station), intentId }),
    ask: <TOperation extends Operation<z.ZodType, z.ZodType>>(
      operation: TOperation,
      request: SentRequestOf<TOperation>,
    ) => call(bus.nc, operation, request) as Promise<ReplyOf<TOperation>>,
    /** Resolves when all commits in the logs are copied. */
    async untilCopied() {
      for (const { name, commits } of logs.all) {
        const newest = await bus.jsm.streams.getMessage(name, { last_by_subj: commits });
        // A position after the end of the log means that the copier has not noticed yet that the log has lost its end.
        await vi.waitFor(async () => {
          const rows = await database`select sequence from audit_position where stream = ${name}`;
          expect(rows).toEqual([{ sequence: newest?.seq ?? 0 }]);
        }, UNTIL_COPIED);
      }
    },
    async stop() {
      await Promise.all(services.map((service) => service.stop()));
      await closeDatabase(database);
      await bus.close();
      await nats.stop();
      await testDatabase.drop();
    },
  };
}

export async function newStation(bus: Bus, sql: Database, logs: StationLogs = ONE_LOG): Promise<ScriptedStation> {
  const [row] = await sql<{ organization_id: number; filial_id: number; station_id: number; device_id: number }[]>`
    with o as (insert into organizations (name) values ('Organization') returning organization_id),
    f as (insert into filials (organization_id, name) select organization_id, 'Filial' from o returning organization_id, filial_id),
    s as (insert into stations (organization_id, filial_id, name, currency)
          select organization_id, filial_id, 'Counter 1', 'EUR' from f returning organization_id, filial_id, station_id)
    insert into devices (organization_id, station_id, name, kind, capabilities)
    select organization_id, station_id, 'Renamed terminal', 'smart_pos_companion', '{handoff_present,outcome_report}' from s
    returning organization_id, (select filial_id from s), station_id, device_id`;
  if (row === undefined) throw new Error("no station");
  const facts = {
    organizationId: row.organization_id,
    filialId: row.filial_id,
    stationId: row.station_id,
    companionId: row.device_id,
    cashier: { id: 7, name: "Ada" },
  };
  return new ScriptedStation(bus, facts, logs);
}

/** The copied events of a station in the order of the log, each as `version.ordinal type`. */
export async function copiedEvents(sql: Database, stationId: number): Promise<string[]> {
  const rows = await sql<{ version: number; ordinal: number; type: string }[]>`
    select version, ordinal, type from station_events where station_id = ${stationId} order by version, ordinal`;
  return rows.map((row) => `${row.version}.${row.ordinal} ${row.type}`);
}

/** The expected copy of a station. */
export function committedEvents(station: ScriptedStation): string[] {
  return station.commits.flatMap(({ commit }) =>
    commit.events.map((event, ordinal) => `${commit.version}.${ordinal} ${event.type}`),
  );
}
