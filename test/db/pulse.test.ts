/** A database that was restored from a backup, with a newer bus. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { readPulse, writePulse } from "../../services/bus/installation.ts";
import { CREDENTIALS } from "../../services/bus/streams.ts";
import { type RelayFixture, startRelayFixture } from "../relay/relay-fixture.ts";
import { runProgram } from "../support/running-program.ts";

const SERVICES = join(import.meta.dirname, "..", "..", "services");
const OLDER =
  /^The database at \S+ \(DATABASE_URL\) is older than the NATS at \S+ \(NATS_URL\), as one is that was restored from a backup: stop all processes, run `npm run migrate -- --database-restored`, and start again; with `npm start` run `npm start -- --database-restored` in place of both\.\n$/;
const WAIT = { timeout: 10_000, interval: 20 };

describe("a restored database", () => {
  let fixture: RelayFixture;
  const pulseOf = async (): Promise<number> => {
    const [row] = await fixture.sql<[{ pulse: number }]>`select pulse from installation`;
    return row.pulse;
  };
  const run = async (...args: readonly string[]) => {
    const [script = "", ...rest] = args;
    const own = { NATS_URL: fixture.nats.url, DATABASE_URL: fixture.database.url, LOG_LEVEL: "silent" };
    const program = runProgram(process.execPath, [join(SERVICES, script), ...rest], {
      env: { ...process.env, ...own },
    });
    return { code: await program.ended, output: program.output() };
  };
  /** Sets the pulse of the bus to that of a much newer database. */
  const advanceBusPulse = () => writePulse(fixture.bus, 1_000);

  beforeAll(async () => {
    fixture = await startRelayFixture();
  });
  afterAll(async () => {
    await fixture.stop();
  });

  test("the bus is a few pulses ahead, as after a fail-over: the relay continues with the next pulse in both", async () => {
    await writePulse(fixture.bus, 10);
    const fail = vi.fn();
    const relay = await fixture.startRelay({ fail });
    await vi.waitFor(async () => expect(await readPulse(fixture.bus)).toBe(11), WAIT);
    expect(await pulseOf()).toBe(11);
    await relay.stop();
    expect(fail).not.toHaveBeenCalled();
  });

  test("a relay starts: its process ends, and the pulse of the bus does not change", async () => {
    await advanceBusPulse();
    const fail = vi.fn();
    const relay = await fixture.startRelay({ fail });
    await vi.waitFor(() => expect(fail).toHaveBeenCalled(), WAIT);
    await relay.stop();
    expect(fail.mock.lastCall).toMatchObject([{ code: "database_older" }]);
    expect(await readPulse(fixture.bus)).toBe(1_000);
  });

  test("a process or `migrate` starts: refused in one sentence with the next step", async () => {
    await advanceBusPulse();
    for (const args of [["main.ts", "relay"], ["migrate.ts"]]) {
      const { code, output } = await run(...args);
      expect(code).toBe(1);
      // `migrate` prints also what it waits for, on a machine that is slow.
      const last = output.replace(/^(?:Waiting until .*|The database has the schema of this version\.)\n/gm, "");
      expect(last).toMatch(OLDER);
    }
  });

  test("`migrate --database-restored`: refused while a relay runs; then empties the bus and skips used numbers", async () => {
    const { sql, bus } = fixture;
    await bus.js.publish(`$KV.${CREDENTIALS.name}.old`, "1");
    await sql`update relay_lease set lapses_at = clock_timestamp() + interval '1 minute'`;
    expect((await run("migrate.ts", "--database-restored")).output).toContain("stop all processes of the installation");
    await sql`update relay_lease set lapses_at = '-infinity'`;
    await advanceBusPulse();
    expect(await run("migrate.ts", "--database-restored")).toMatchObject({ code: 0 });
    expect(await readPulse(bus)).toBe(0);
    expect((await bus.jsm.streams.info(`KV_${CREDENTIALS.name}`)).state.messages).toBe(0);
    const [next] = await sql<[{ intent: number; order: number }]>`
      select nextval('intent_ids') as intent, nextval(pg_get_serial_sequence('orders', 'order_id')) as order`;
    expect(next).toEqual({ intent: 1_000_000_002, order: 1_000_000_002 });
    // A narrower sequence is not raised. The number of a migration is no id of the service.
    const narrow = await sql`select sequencename from pg_sequences where data_type <> 'bigint'::regtype`;
    expect(narrow).toEqual([{ sequencename: "schema_migrations_id_seq" }]);
    expect(await sql`select stream from bus_marks where uncopied`).toEqual([{ stream: "STATION_LOG_0" }]);
  });
});
