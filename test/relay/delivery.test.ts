import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CREDENTIALS } from "../../services/bus/streams.ts";
import { credentialKey, type OutboxRow, sessionKey, stationKey } from "../../services/db/outbox.ts";
import { deleteEntry, putOnce } from "../../services/relay/buckets.ts";
import { RELAY_LIMITS } from "../../services/relay/limits.ts";
import { type RelayFixture, sessionHash, sessionPut, startRelayFixture, stationRow } from "./relay-fixture.ts";

let fixture: RelayFixture;
beforeAll(async () => {
  fixture = await startRelayFixture();
  await fixture.startStations();
  await fixture.startRelay();
});
afterAll(() => fixture.stop());

const credentialEntry = { deviceId: 1, stationId: 1, scopes: ["device:read"] };
const hash = (letter: string): string => letter.repeat(64);

async function newestOf(stream: string, subject: string) {
  const message = await fixture.bus.jsm.streams.getMessage(stream, { last_by_subj: subject });
  if (message === null) throw new Error(`${subject} has no message.`);
  return { sequence: message.seq, operation: message.header.get("KV-Operation"), text: message.string() };
}
const credential = (key: string) => newestOf(`KV_${CREDENTIALS.name}`, `$KV.${CREDENTIALS.name}.${key}`);

describe("the relay", () => {
  test("delivers the rows of each key in their order, many keys side by side", async () => {
    const stations = Array.from({ length: 20 }, (_, index) => 100 + index);
    const revisions = Array.from({ length: 15 }, (_, index) => index + 1);
    for (const revision of revisions) {
      await Promise.all(stations.map((stationId) => fixture.write(stationRow(stationId, revision))));
    }
    await fixture.delivered();
    for (const stationId of stations) {
      const commits = await fixture.commits(stationId);
      expect(commits.map((commit) => commit.state.revision)).toEqual(revisions);
      const ids = commits.map((commit) => Number(commit.commandId.replace("outbox:", "")));
      expect(ids).toEqual(ids.toSorted((a, b) => a - b));
    }
  });

  test("delivers a row that nobody asked to flush within a poll or two", async () => {
    await fixture.write(sessionPut(1, 1));
    await fixture.delivered();
    const [row] = await fixture.sql<{ took_ms: number }[]>`
      select extract(epoch from delivered_at - created_at)::float8 * 1000 as took_ms from outbox where key = ${sessionKey(1)}`;
    expect(row?.took_ms).toBeLessThan(4 * RELAY_LIMITS.pollIntervalMs);
    expect(await fixture.session(sessionHash(1))).toBe("put");
  });

  test("says with a flush how far the replicas must come, also for rows that were delivered before", async () => {
    await fixture.write(stationRow(200, 1), {
      key: stationKey(200),
      kind: "credential_put",
      hash: hash("a"),
      entry: credentialEntry,
    });
    const barrier = await fixture.flush(stationKey(200));
    const [commit] = await fixture.commits(200);
    const entry = await credential(hash("a"));
    expect(JSON.parse(entry.text)).toEqual(credentialEntry);
    expect(barrier).toEqual({ positions: { STATION_LOG_0: commit?.sequence, KV_CREDENTIALS: entry.sequence } });
    expect(await fixture.flush(stationKey(200))).toEqual(barrier);
    expect(await fixture.flush(stationKey(999))).toEqual({ positions: {} });
  });

  test("answers many flushes of one key at once, each after its own row", async () => {
    const numbers = Array.from({ length: 40 }, (_, index) => 1_000 + index);
    await Promise.all(
      numbers.map(async (number) => {
        await fixture.write(sessionPut(7, number));
        await fixture.flush(sessionKey(7));
        expect(await fixture.session(sessionHash(number))).toBe("put");
      }),
    );
  });

  test("records a row that its station refuses for good and goes on behind it", async () => {
    const stationId = 300;
    const description = { kind: "customer_display", capabilities: [], handoffTarget: "" } as const;
    const devicePut = (name: string): OutboxRow => ({
      key: stationKey(stationId),
      kind: "station_command",
      stationId,
      actor: { kind: "registry", id: 0 },
      command: { type: "device_put", device: { ...description, name, deviceId: 1, status: "pending", revision: 1 } },
    });
    await fixture.write(
      devicePut("D"),
      // Longer than a station's host takes.
      devicePut("D".repeat(1_001)),
      stationRow(stationId, 1),
    );
    await fixture.flush(stationKey(stationId));
    const rows = await fixture.sql`
      select failed_reason, sequence is null as unstored, delivered_at is null as outstanding from outbox
      where key = ${stationKey(stationId)} order by outbox_id`;
    expect(rows).toEqual([
      { failed_reason: "station_unknown", unstored: true, outstanding: false },
      { failed_reason: "invalid_request", unstored: true, outstanding: false },
      { failed_reason: null, unstored: false, outstanding: false },
    ]);
    expect(await fixture.commits(stationId)).toHaveLength(1);
  });

  test("takes out a credential whose deletion overtakes its entry", async () => {
    // The deletion has a key of its own, so that it never waits for a station's actor.
    await fixture.write({ key: credentialKey(9), kind: "credential_delete", hash: hash("b") });
    const { positions } = await fixture.flush(credentialKey(9));
    await fixture.write({ key: stationKey(400), kind: "credential_put", hash: hash("b"), entry: credentialEntry });
    await fixture.flush(stationKey(400));
    expect(await credential(hash("b"))).toMatchObject({ operation: "DEL", sequence: positions["KV_CREDENTIALS"] });
  });
});

describe("an entry of a bucket", () => {
  test("is put once: repeated it stands where it stood, and deleted it never comes back", async () => {
    const deps = fixture.bus;
    const first = await putOnce(deps, CREDENTIALS, hash("c"), credentialEntry);
    expect(await putOnce(deps, CREDENTIALS, hash("c"), credentialEntry)).toBe(first);
    const deleted = await deleteEntry(deps, CREDENTIALS, hash("c"));
    expect(await putOnce(deps, CREDENTIALS, hash("c"), credentialEntry)).toBe(deleted);
    expect((await credential(hash("c"))).operation).toBe("DEL");
  });
});
