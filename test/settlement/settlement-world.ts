/** A settlement service with a separate NATS and database, and the people and stations that a test needs. */

import type { z } from "zod";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import type { Caller } from "../../services/bus/messages/caller.ts";
import { call, type Operation, type ReplyOf, type SentRequestOf } from "../../services/bus/operation.ts";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { createLog } from "../../services/runtime/log.ts";
import { startSettlementService } from "../../services/settlement/service.ts";
import { HOLDS_LOCKS } from "../support/held-locks.ts";
import { ONE_LOG } from "../support/one-log.ts";
import { refuseCommands, refuseFlushes } from "../support/refuse-flushes.ts";
import { cloneDatabase, startNats } from "../support/servers.ts";

export { refusalOf } from "../support/refusal-of.ts";

export interface SettlementWorld {
  readonly bus: Bus;
  readonly database: Database;
  /** A new station of a new organization, with this currency, and its cashier. */
  openStation(currency?: string): Promise<{ stationId: number; cashier: Caller }>;
  ask<TOperation extends Operation<z.ZodType, z.ZodType>>(
    operation: TOperation,
    request: SentRequestOf<TOperation>,
  ): Promise<ReplyOf<TOperation>>;
  stop(): Promise<void>;
}

export async function startSettlementWorld(): Promise<SettlementWorld> {
  const nats = await startNats();
  const testDatabase = await cloneDatabase();
  const log = createLog({ service: "settlement", level: "silent" });
  const bus = await connectBus({ url: nats.url, name: "test", log });
  const settings = { natsUrl: nats.url, databaseUrl: testDatabase.url, logLevel: "silent" as const };
  await refuseFlushes(bus.nc);
  await refuseCommands(bus.nc);
  const database = openDatabase({ ...HOLDS_LOCKS, url: testDatabase.url });
  const service = await startSettlementService({ bus, logs: ONE_LOG, log, settings, environment: {} });
  return {
    bus,
    database,
    openStation: (currency = "EUR") => openStation(database, currency),
    ask: (operation, request) => call(bus.nc, operation, request) as Promise<ReplyOf<typeof operation>>,
    async stop() {
      await service.stop();
      await closeDatabase(database);
      await bus.close();
      await nats.stop();
      await testDatabase.drop();
    },
  };
}

async function openStation(sql: Database, currency: string): Promise<{ stationId: number; cashier: Caller }> {
  const [row] = await sql<{ organization_id: number; station_id: number }[]>`
    with o as (insert into organizations (name) values ('Organization') returning organization_id),
    f as (insert into filials (organization_id, name) select organization_id, 'Filial' from o returning organization_id, filial_id)
    insert into stations (organization_id, filial_id, name, currency)
    select organization_id, filial_id, 'Counter', ${currency} from f returning organization_id, station_id`;
  if (row === undefined) throw new Error("no station");
  return { stationId: row.station_id, cashier: cashierOf(row.organization_id, 7) };
}

export function cashierOf(organizationId: number, userId: number): Caller {
  return { userId, name: "Ada", organizationId, role: "cashier", permissions: ["payments.collect"] };
}
