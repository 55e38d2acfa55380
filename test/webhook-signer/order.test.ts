/** A reader that continues after its last id misses no event, however many writers there are. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { takeEvents } from "../../services/webhook-signer/intake.ts";
import { listConsumerWebhookDeliveries } from "../../services/webhook-signer/sql/deliveries.ts";
import { type Fleet, type SignerWorld, startSignerWorld } from "./signer-world.ts";

const WRITERS = 50;
const EVENTS_EACH = 8;

let world: SignerWorld;
let writing: Database;
beforeAll(async () => {
  world = await startSignerWorld({ signers: 0 });
  writing = openDatabase({ url: world.databaseUrl, maxConnections: WRITERS });
});
afterAll(async () => {
  await closeDatabase(writing);
  await world.stop();
});

/** Reads after its last id, again and again, as a consumer does. Once `isOver` holds, it reads one last time. */
async function readOn({ consumerId }: Fleet, isOver: () => boolean): Promise<Set<number>> {
  const seen = new Set<number>();
  let sinceId = 0;
  for (let last = false; ; ) {
    const page = { consumerId, sinceId, limit: 100, eventType: undefined, status: undefined };
    const rows = await listConsumerWebhookDeliveries(world.database, page);
    for (const { delivery_id: deliveryId } of rows) {
      seen.add(deliveryId);
      sinceId = deliveryId;
    }
    if (rows.length > 0) continue;
    if (last) return seen;
    last = isOver();
    await delay(3);
  }
}

test("fifty writers at once: a reader with since_id misses no event", async () => {
  const fleet = await world.openFleet();
  let left = WRITERS;
  const reading = readOn(fleet, () => left === 0);
  const write = async (writer: number): Promise<void> => {
    for (let at = 0; at < EVENTS_EACH; at += 1) {
      const eventId = 1 + writer * EVENTS_EACH + at;
      const { organizationId, filialId, consumerId } = fleet;
      const payload = { task_id: eventId, display_number: 1, leg: "courier", status: "cancelled" } as const;
      const createdAt = new Date().toISOString();
      const event = {
        organizationId,
        filialId,
        consumerId,
        createdAt,
        eventType: "serving_task.cancelled",
        payload,
      } as const;
      // On a busy machine a writer may wait too long for the consumer's lock; then the bus delivers the event again.
      for (let isTaken = false; !isTaken; ) {
        isTaken = await takeEvents(writing, [{ eventId, event }]).then(() => true, isLockTimeout);
      }
    }
    left -= 1;
  };
  await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)));
  const seen = await reading;
  const [row] = await world.database<[{ count: number }]>`select count(*)::int as count from webhook_deliveries`;
  expect(row.count).toBe(WRITERS * EVENTS_EACH);
  expect(seen.size).toBe(row.count);
});

/** False for the one error after which the writer tries again; throws any other error. */
function isLockTimeout(error: unknown): false {
  if (error instanceof Error && "code" in error && error.code === "55P03") return false;
  throw error;
}
