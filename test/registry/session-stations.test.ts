/** The end of a session reaches each station that the session may drive, despite crashes and concurrent requests. */
import { createHash, randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { decodeCommit } from "../../machines/station/commit.ts";
import type { StationState } from "../../machines/station/state.ts";
import type { Caller } from "../../services/bus/messages/caller.ts";
import * as sessions from "../../services/bus/messages/sessions.ts";
import * as users from "../../services/bus/messages/users.ts";
import { askStation } from "../../services/bus/station-client.ts";
import { REGISTRY_LIMITS } from "../../services/registry/limits.ts";
import { startRelayService } from "../../services/relay/service.ts";
import { startStationsService } from "../../services/stations/service.ts";
import { STATION_LOG, stationLogSubject } from "../support/one-log.ts";
import { callerOf, newStation, type RegistryFixture, refusalOf, startRegistry } from "./registry-fixture.ts";

const PASSWORD = "the first password";

let fixture: RegistryFixture;
beforeAll(async () => {
  // No relay runs, so the registry's rows stay as after a crash right after its commit.
  fixture = await startRegistry();
});
afterAll(() => fixture.stop());

let people = 0;
let cashier: Caller;
let email: string;
beforeEach(async () => {
  email = `session-${(people += 1)}@sandbox.example`;
  const request = { caller: fixture.owner, email, name: "Carl", role: "cashier" as const, password: PASSWORD };
  await fixture.ask(users.createUser, request);
  cashier = await callerOf(fixture.sql, email);
});

interface Session {
  readonly sessionId: number;
  readonly expiresAtMs: number;
}
async function logIn(): Promise<Session> {
  const details = { email, password: PASSWORD, address: `198.51.100.${people}` };
  const { token, expiresAtMs } = await fixture.ask(sessions.logIn, { ...details, permission: "payments.collect" });
  const hash = createHash("sha256").update(token).digest();
  const [row] = await fixture.sql<[{ session_id: number }]>`
    select session_id from sessions where token_hash = ${hash}`;
  return { sessionId: row.session_id, expiresAtMs };
}
const bind = ({ sessionId }: Session, stationId: number, caller = cashier) =>
  fixture.ask(sessions.bindStation, { caller, sessionId, stationId });

/** The undelivered notices to a station: its sessions that have ended, and who ended them. */
async function notifications(stationId: number): Promise<unknown[]> {
  const rows = await fixture.sql<{ session_ids: number[]; actor: unknown }[]>`
    select payload -> 'command' -> 'sessionIds' as session_ids, payload -> 'actor' as actor from outbox
    where key = ${`station.${stationId}`} and payload -> 'command' ->> 'type' = 'sessions_ended' order by outbox_id`;
  return rows.map((row) => [row.session_ids, row.actor]);
}

describe("the end of a session", () => {
  test("a log-out: the stations of the session are notified, and no others", async () => {
    const [mine, other] = [await logIn(), await logIn()];
    const [one, two] = [await newStation(fixture), await newStation(fixture)];
    await bind(mine, one.stationId);
    await bind(mine, one.stationId);
    await bind(other, two.stationId);
    await fixture.ask(sessions.logOut, { caller: cashier, sessionId: mine.sessionId });
    const actor = { kind: "cashier", id: cashier.userId, name: "Carl" };
    expect(await notifications(one.stationId)).toEqual([[[mine.sessionId], actor]]);
    expect(await notifications(two.stationId)).toEqual([]);
  });

  test.each([
    ["suspension", () => fixture.ask(users.moveUser, { ...byOwner(), move: "SUSPEND" })],
    ["new password", () => fixture.ask(users.resetUserPassword, { ...byOwner(), password: "quite another password" })],
  ])("%s: each station is notified once about all of its sessions, with the owner's name", async (_what, act) => {
    const [first, second] = [await logIn(), await logIn()];
    const station = await newStation(fixture);
    await bind(first, station.stationId);
    await bind(second, station.stationId);
    await act();
    const { userId, name } = fixture.owner;
    const sessionIds = [first.sessionId, second.sessionId];
    expect(await notifications(station.stationId)).toEqual([[sessionIds, { kind: "owner", id: userId, name }]]);
  });

  test("one log-in above the limit: the station of the oldest session is notified", async () => {
    const oldest = await logIn();
    const station = await newStation(fixture);
    await bind(oldest, station.stationId);
    await fixture.sql`
      insert into sessions (organization_id, user_id, token_hash, expires_at)
      select ${cashier.organizationId}, ${cashier.userId}, sha256(${randomUUID()}::bytea || n::text::bytea), now() + interval '1 hour'
      from generate_series(2, ${REGISTRY_LIMITS.sessionsPerUser}) as n`;
    await logIn();
    expect(await notifications(station.stationId)).toMatchObject([[[oldest.sessionId], { kind: "cashier" }]]);
  });
});

const byOwner = () => ({ caller: fixture.owner, userId: cashier.userId });

describe("a session that acquires a station", () => {
  test("another person's session, and one that has ended: refused", async () => {
    const session = await logIn();
    const { stationId } = await newStation(fixture);
    expect(await refusalOf(bind(session, stationId, fixture.cashier))).toEqual({ code: "session_ended" });
    await fixture.ask(sessions.logOut, { caller: cashier, sessionId: session.sessionId });
    expect(await refusalOf(bind(session, stationId))).toEqual({ code: "session_ended" });
  });

  test("a session that ends at the same moment: refused, or the station is notified", async () => {
    const { stationId } = await newStation(fixture);
    for (let round = 0; round < 8; round += 1) {
      const session = await logIn();
      const before = (await notifications(stationId)).length;
      const [bound] = await Promise.allSettled([
        bind(session, stationId),
        fixture.ask(sessions.logOut, { caller: cashier, sessionId: session.sessionId }),
      ]);
      const notified = (await notifications(stationId)).length - before;
      expect(notified).toBe(bound.status === "fulfilled" ? 1 : 0);
    }
  });

  test("more stations than one session may have: refused", async () => {
    const session = await logIn();
    const { stationId } = await newStation(fixture);
    await fixture.sql`
      with made as (
        insert into stations (organization_id, filial_id, name, currency)
        select organization_id, filial_id, 'Many', currency from stations, generate_series(1, ${REGISTRY_LIMITS.stationsPerSession})
        where station_id = ${stationId} returning station_id)
      insert into session_stations (session_id, station_id) select ${session.sessionId}, station_id from made`;
    expect(await refusalOf(bind(session, stationId))).toMatchObject({ code: "conflict" });
  });

  test("a station that does not exist: not found", async () => {
    expect(await refusalOf(bind(await logIn(), 987_654))).toEqual({ code: "not_found" });
  });
});

describe("a crash of the relay after the end of a session", () => {
  test("a crash after the commit: a later relay frees the station", async () => {
    const session = await logIn();
    const station = await newStation(fixture);
    await bind(session, station.stationId);
    const stations = await startStationsService(fixture.serviceDeps);
    const first = await startRelayService(fixture.serviceDeps);
    const actor = { kind: "cashier", id: cashier.userId, name: cashier.name } as const;
    const command = { type: "lease_acquire", session } as const;
    const ask = () => askStation(fixture.bus.nc, station.stationId, { commandId: randomUUID(), actor, command });
    await expect.poll(() => ask().then(({ reply }) => reply.ok), { timeout: 10_000 }).toBe(true);
    await first.stop();
    await fixture.ask(sessions.logOut, { caller: cashier, sessionId: session.sessionId });
    expect((await leaseOf(station.stationId))?.sessionId).toBe(session.sessionId);
    const second = await startRelayService(fixture.serviceDeps);
    await expect.poll(() => leaseOf(station.stationId), { timeout: 10_000 }).toBeNull();
    // This request of the ended session comes too late.
    expect((await ask()).reply).toEqual({ ok: false, code: "session_ended" });
    await second.stop();
    await stations.stop();
  });
});

/** Reads the lease from the station's newest commit. */
async function leaseOf(stationId: number): Promise<StationState["lease"]> {
  const message = await fixture.bus.jsm.streams.getMessage(STATION_LOG.name, {
    last_by_subj: stationLogSubject(stationId),
  });
  return message === null ? null : decodeCommit(message.string()).state.lease;
}
