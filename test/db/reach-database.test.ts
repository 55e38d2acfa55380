import { describe, expect, test } from "vitest";
import { addressOf, reachDatabase } from "../../services/db/reach-database.ts";
import { startFaultyServer } from "../support/faulty-server.ts";
import { cloneDatabase } from "../support/servers.ts";

const NOWHERE = "postgres://user:hidden@127.0.0.1:1/nothing";
const WITHIN_MS = 700;

describe("a database at the start", () => {
  test.each([
    ["close", "the server accepts connections and closes them (CONNECTION_CLOSED); check"],
    ["silent", "the server does not answer (database_deadline); check"],
    ["ready then silent", "the server does not answer (database_deadline); check"],
  ] as const)("with the fault %s: one sentence with the address and without the password", async (fault, why) => {
    const server = await startFaultyServer(NOWHERE, fault);
    const startedAtMs = performance.now();
    const failure = await reachDatabase({ url: server.url, withinMs: WITHIN_MS }).catch((error: unknown) => error);
    expect(failure).toMatchObject({
      code: "database_unreachable",
      message: expect.stringContaining(
        `The PostgreSQL at 127.0.0.1:${server.port} (DATABASE_URL) cannot be used: ${why} `,
      ),
    });
    expect(performance.now() - startedAtMs).toBeLessThan(WITHIN_MS + 500);
    await server.stop();
  });

  test("without a server at its address: one sentence, after the time limit", async () => {
    await expect(reachDatabase({ url: NOWHERE, withinMs: WITHIN_MS })).rejects.toMatchObject({
      message:
        "The PostgreSQL at 127.0.0.1:1 (DATABASE_URL) cannot be used: nothing listens at that address (ECONNREFUSED); start the server, or correct host and port.",
    });
  });

  test("with a refused password, or unknown to its server: one sentence at once", async () => {
    const database = await cloneDatabase();
    const [wrong, missing] = [new URL(database.url), new URL(database.url)];
    wrong.password = "wrong";
    missing.pathname = "/missing";
    const startedAtMs = performance.now();
    await expect(reachDatabase({ url: wrong.href })).rejects.toThrow(
      "cannot be used: the server refuses the user or the password (28P01); correct them in the address.",
    );
    await expect(reachDatabase({ url: missing.href })).rejects.toThrow(
      "cannot be used: the server has no database of that name (3D000); create it, or correct the name in the address.",
    );
    expect(performance.now() - startedAtMs).toBeLessThan(300);
    await database.drop();
  });

  test("with a server that answers later: the start waits for it", async () => {
    const database = await cloneDatabase();
    const server = await startFaultyServer(database.url, "close");
    setTimeout(() => server.become("none"), 300);
    await reachDatabase({ url: server.url });
    expect(server.dials()).toBeGreaterThan(1);
    await server.stop();
    await database.drop();
  });

  test("with a server that does not answer, and the start is stopped: the wait ends at once", async () => {
    const server = await startFaultyServer(NOWHERE, "silent");
    const stopping = new AbortController();
    const waiting = reachDatabase({ url: server.url, signal: stopping.signal });
    const startedAtMs = performance.now();
    stopping.abort();
    await expect(waiting).rejects.toMatchObject({ code: "start_stopped" });
    expect(performance.now() - startedAtMs).toBeLessThan(300);
    await server.stop();
  });
});

test("its address in a sentence: without user, password, path and query", () => {
  expect(addressOf("postgres://user:p%40ss@db.example:5433/name?sslmode=require")).toBe("db.example:5433");
  expect(addressOf("postgres://db.example/name")).toBe("db.example");
  expect(addressOf("postgres://user:hidden@a.example:1,b.example:2/name")).toBe("a.example:1,b.example:2");
});
