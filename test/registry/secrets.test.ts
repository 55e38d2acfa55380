/** No password, token, code or credential is stored anywhere (I9): in no table, no message, no log. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startServiceProcess } from "../../deploy/service-process.ts";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { moveDevice } from "../../services/bus/messages/devices.ts";
import { enrollDevice, issueEnrollmentCode } from "../../services/bus/messages/enrollment-codes.ts";
import { seedSandbox } from "../../services/bus/messages/sandbox-organization.ts";
import * as sessions from "../../services/bus/messages/sessions.ts";
import * as users from "../../services/bus/messages/users.ts";
import { call } from "../../services/bus/operation.ts";
import { BUCKETS, STREAMS } from "../../services/bus/streams.ts";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { createLog } from "../../services/runtime/log.ts";
import { STATION_LOG } from "../support/one-log.ts";
import { prepareBus } from "../support/prepared-bus.ts";
import { cloneDatabase, startNats, type TestDatabase, type TestServer } from "../support/servers.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";
import { callerOf, refusalOf } from "./registry-fixture.ts";

const MAIN = join(import.meta.dirname, "..", "..", "services", "main.ts");

let nats: TestServer;
let database: TestDatabase;
let folder: TemporaryFolder;
let bus: Bus;
let sql: Database;
let logFile: string;
let stopServices: () => Promise<unknown>;

beforeAll(async () => {
  [nats, database] = await Promise.all([startNats(), cloneDatabase()]);
  await prepareBus(nats.url, database.url);
  folder = temporaryFolder("secrets");
  logFile = join(folder.path, "services.log");
  const { child } = await startServiceProcess({
    name: "services",
    script: MAIN,
    args: ["registry", "relay", "stations"],
    // The log has lines of every level.
    environment: { ...process.env, NATS_URL: nats.url, DATABASE_URL: database.url, LOG_LEVEL: "trace" },
    logFile,
  });
  stopServices = () => child.stop();
  bus = await connectBus({ url: nats.url, name: "test", log: createLog({ service: "test", level: "silent" }) });
  sql = openDatabase({ url: database.url, maxConnections: 1 });
});
afterAll(async () => {
  await stopServices();
  await closeDatabase(sql);
  await bus.close();
  await Promise.all([nats.stop(), database.drop()]);
  folder.remove();
});

async function everyTable(): Promise<string> {
  const tables = await sql<{ table_name: string }[]>`
    select table_name from information_schema.tables where table_schema = 'public'`;
  const texts: string[] = [];
  for (const { table_name: name } of tables) {
    const rows = await sql<{ text: string }[]>`select ${sql(name)}::text as text from ${sql(name)}`;
    texts.push(...rows.map((row) => row.text));
  }
  return texts.join("\n");
}

async function everyMessage(): Promise<string> {
  const texts: string[] = [];
  for (const stream of [
    STATION_LOG.name,
    ...STREAMS.map((one) => one.name),
    ...BUCKETS.map((one) => `KV_${one.name}`),
  ]) {
    const { state } = await bus.jsm.streams.info(stream);
    for (let sequence = state.first_seq; sequence <= state.last_seq; sequence += 1) {
      const message = await bus.jsm.streams.getMessage(stream, { seq: sequence }).catch(() => null);
      if (message !== null) texts.push(`${message.subject} ${message.string()}`);
    }
  }
  return texts.join("\n");
}

/** A secret as it was shown, and in each form that an error might have. */
function forms(secret: string): string[] {
  const bare = secret.replaceAll("-", "");
  const texts = [secret, bare, bare.toLowerCase(), secret.replace(/^dps?_([0-9a-f]{2}_)?/, "")];
  const encoded = texts.flatMap((text) => [Buffer.from(text).toString("hex"), Buffer.from(text).toString("base64")]);
  return [...new Set([...texts, ...encoded])];
}

/** Longer than in production, because a password hash takes long on a busy test machine. */
const ask: typeof call = (nc, operation, request) => call(nc, operation, request, 20_000);

test("no secret is left in a table, on the bus or in a log", async () => {
  const ownerPassword = "the owner's own password";
  const cashierPassword = "the cashier's own password";
  const seeded = await ask(bus.nc, seedSandbox, { ownerPassword, cashierPassword });
  const codes = seeded.stations.flatMap((station) => station.devices.map((device) => device.enrollmentCode ?? ""));
  const { email } = seeded.owner;
  const session = await ask(bus.nc, sessions.logIn, {
    email,
    password: ownerPassword,
    address: "192.0.2.1",
    permission: "organization.manage",
  });
  const second = await ask(bus.nc, sessions.logIn, {
    email,
    password: ownerPassword,
    address: "192.0.2.1",
    permission: "organization.manage",
  });
  const wrongPassword = "a password that is not it";
  await refusalOf(
    ask(bus.nc, sessions.logIn, {
      email,
      password: wrongPassword,
      address: "192.0.2.1",
      permission: "organization.manage",
    }),
  );
  const caller = await callerOf(sql, email);
  const userPassword = "the new user's own password";
  const user = { caller, email: "new@example.com", name: "New", role: "cashier" as const, password: userPassword };
  await ask(bus.nc, users.createUser, user);
  await refusalOf(ask(bus.nc, users.createUser, user));

  const first = await ask(bus.nc, enrollDevice, { address: "127.0.0.1", code: codes[0] ?? "" });
  const other = await ask(bus.nc, enrollDevice, { address: "127.0.0.1", code: codes[1] ?? "" });
  await refusalOf(ask(bus.nc, enrollDevice, { address: "127.0.0.1", code: codes[0] ?? "" }));
  const unknownCode = "7K3PQ-9XW2M";
  await refusalOf(ask(bus.nc, enrollDevice, { address: "127.0.0.1", code: unknownCode }));
  await ask(bus.nc, moveDevice, { caller, deviceId: first.device.deviceId, move: "RESET" });
  const issued = await ask(bus.nc, issueEnrollmentCode, { caller, deviceId: first.device.deviceId });
  // This request fails in the service, which could log an error with all its data.
  await sql`alter table outbox add constraint takes_nothing check (false) not valid`;
  await refusalOf(ask(bus.nc, enrollDevice, { address: "127.0.0.1", code: issued.code }));
  await refusalOf(
    ask(bus.nc, sessions.logIn, {
      email,
      password: ownerPassword,
      address: "192.0.2.1",
      permission: "organization.manage",
    }),
  );
  await sql`alter table outbox drop constraint takes_nothing`;
  const secrets = {
    passwords: [ownerPassword, cashierPassword, wrongPassword, userPassword],
    tokens: [session.token, second.token],
    codes: [...codes, unknownCode, issued.code],
    credentials: [first.credential, other.credential],
  };

  const places = { tables: await everyTable(), messages: await everyMessage(), log: readFileSync(logFile, "utf8") };
  // These places have values that they may have, so the search covers them.
  expect(places.tables).toContain(email);
  expect(places.messages).toContain('"device:read"');
  expect(places.messages).toContain("Sandbox Counter");
  expect(places.log).toContain("log-in refused");
  expect(places.log).toContain("a request failed");
  for (const [place, text] of Object.entries(places)) {
    for (const [what, values] of Object.entries(secrets)) {
      for (const value of values) {
        for (const form of forms(value)) expect(text.includes(form), `one of the ${what} in the ${place}`).toBe(false);
      }
    }
  }
});
