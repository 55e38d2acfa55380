import { randomUUID } from "node:crypto";
import { afterAll, beforeEach, describe, expect, inject, it } from "vitest";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { claimInstallation } from "../../services/db/installation.ts";
import { closeDatabase, openDatabase } from "../../services/db/pool.ts";
import { QUIET } from "../bus/waiting.ts";
import { comeBackWith } from "../support/nats-data.ts";
import { cloneDatabase, startNats, type TestDatabase, type TestServer } from "../support/servers.ts";

interface Installation {
  readonly id: string;
  readonly database: TestDatabase;
}

/** A database of an installation of its own; test databases are all cloned from one. */
async function newInstallation(): Promise<Installation> {
  const [id, database] = [randomUUID(), await cloneDatabase()];
  const sql = openDatabase({ url: database.url, maxConnections: 1 });
  await sql`update installation set id = ${id}`;
  await closeDatabase(sql);
  return { id, database };
}

describe("the installation that a bus belongs to", () => {
  let nats: TestServer;
  let bus: Bus;
  const undo: (() => Promise<unknown>)[] = [];
  const claim = ({ database }: Installation): Promise<string> =>
    claimInstallation({ bus, natsUrl: nats.url, databaseUrl: database.url, replicas: 1 });
  const outcome = (installation: Installation): Promise<unknown> =>
    claim(installation).catch((error: unknown) => error);
  const add = async (): Promise<Installation> => {
    const installation = await newInstallation();
    undo.push(() => installation.database.drop());
    return installation;
  };

  beforeEach(async () => {
    nats = await startNats();
    bus = await connectBus({ url: nats.url, name: "test", log: QUIET });
    return async () => {
      await bus.close();
      await nats.stop();
    };
  });
  afterAll(async () => {
    await Promise.all(undo.map((step) => step()));
  });

  it("the first one that starts there, at each of its starts", async () => {
    const first = await add();
    expect(await claim(first)).toBe(first.id);
    expect(await claim(first)).toBe(first.id);
  });

  it("another one: refused with both names, and nothing on the bus is changed", async () => {
    const [first, second] = [await add(), await add()];
    await claim(first);
    const database = new URL(second.database.url);
    await expect(claim(second)).rejects.toMatchObject({
      code: "installations_differ",
      message: `Two installations meet: the NATS at 127.0.0.1:${nats.port} belongs to ${first.id}, and the database at ${database.host}${database.pathname} belongs to ${second.id}; set NATS_URL and DATABASE_URL to servers of the same installation, or empty that NATS if the other database is gone for good.`,
    });
    const streams = await bus.jsm.streams.list().next();
    expect(streams.map(({ config, state }) => [config.name, state.last_seq])).toEqual([["KV_INSTALLATION", 1]]);
    expect(await claim(first)).toBe(first.id);
  });

  it("several processes of two installations at once on a new bus: one installation has it, the other is refused", async () => {
    const [first, second] = [await add(), await add()];
    const outcomes = await Promise.all([first, second, first, second, first, second].map(outcome));
    const owners = new Set(outcomes.filter((result) => typeof result === "string"));
    expect(owners.size).toBe(1);
    const refused = outcomes.filter((result) => typeof result !== "string");
    expect(refused).toHaveLength(3);
    for (const error of refused) expect(error).toMatchObject({ code: "installations_differ" });
  });

  it("a copy of its database, as a restored dump is one: the same installation", async () => {
    const first = await add();
    await claim(first);
    const copy = `${new URL(first.database.url).pathname.slice(1)}_copy`;
    const admin = openDatabase({ url: inject("databaseAdminUrl"), maxConnections: 1 });
    await admin`create database ${admin(copy)} template ${admin(new URL(first.database.url).pathname.slice(1))}`;
    const url = new URL(first.database.url);
    url.pathname = `/${copy}`;
    const claimed = claim({ id: first.id, database: { url: url.href, drop: async () => undefined } });
    expect(await claimed.finally(() => admin`drop database ${admin(copy)} with (force)`)).toBe(first.id);
    await closeDatabase(admin);
  });

  it("a bus that has lost its data: the installation that starts there next", async () => {
    const [first, second] = [await add(), await add()];
    await claim(first);
    await comeBackWith(nats, undefined);
    await expect.poll(() => outcome(second)).toBe(second.id);
    await expect(claim(first)).rejects.toMatchObject({ code: "installations_differ" });
  });
});
