import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "nats";
import postgres from "postgres";
import { describe, expect, test } from "vitest";
import { cloneDatabase, startNats, startPostgres } from "../support/servers.ts";

async function natsAt(address: string) {
  const url = new URL(address);
  return await connect({ servers: url.host, token: url.username });
}

describe("the servers that tests get", () => {
  test("a killed nats-server comes back on the same address with what it had acknowledged", async () => {
    const server = await startNats();
    const before = await natsAt(server.url);
    const manager = await jetstreamManager(before);
    await manager.streams.add({ name: "KEPT", subjects: ["kept"] });
    await jetstream(before).publish("kept", "message");
    await server.kill9();
    await before.close();
    await server.restart();
    const after = await natsAt(server.url);
    const message = await (await jetstreamManager(after)).streams.getMessage("KEPT", { last_by_subj: "kept" });
    expect(message?.string()).toBe("message");
    await after.close();
    await server.stop();
  });

  test("a nats-server refuses who does not have its token", async () => {
    const server = await startNats();
    await expect(connect({ servers: new URL(server.url).host })).rejects.toThrow(/authorization/i);
    await server.stop();
  });

  test("a killed PostgreSQL comes back on the same address with what it had committed", async () => {
    const server = await startPostgres();
    const before = postgres(server.url, { max: 1 });
    await before`create table kept (word text)`;
    await before`insert into kept values ('row')`;
    await server.kill9();
    await before.end({ timeout: 0 });
    await server.restart();
    const after = postgres(server.url, { max: 1 });
    expect((await after`select word from kept`)[0]?.word).toBe("row");
    await after.end();
    await server.stop();
  });

  test("databases of two tests are migrated and know nothing of each other", async () => {
    const [one, other] = [await cloneDatabase(), await cloneDatabase()];
    const sqlOne = postgres(one.url, { max: 1 });
    const sqlOther = postgres(other.url, { max: 1 });
    await sqlOne`create table only_here (word text)`;
    expect((await sqlOther`select to_regclass('only_here') is null as absent`)[0]?.absent).toBe(true);
    expect((await sqlOther`select count(*)::int as count from schema_migrations`)[0]?.count).toBeGreaterThan(0);
    // A connection that is still open must not keep a test's database alive.
    await one.drop();
    await sqlOther.end();
    await other.drop();
    await sqlOne.end({ timeout: 0 });
  });
});
