/** How events of robotics come into their stream: in order, and once, although the relay may publish one twice. */
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  type PublishedRoboticsEvent,
  publishedRoboticsEventSchema,
} from "../../services/bus/messages/robotics-events.ts";
import { ROBOTICS_EVENTS } from "../../services/bus/streams.ts";
import { roboticsEventSubject } from "../../services/bus/subjects.ts";
import { filialKey, type OutboxRow } from "../../services/db/outbox.ts";
import { publishRoboticsEvent } from "../../services/relay/delivery.ts";
import { type RelayFixture, startRelayFixture } from "./relay-fixture.ts";

let fixture: RelayFixture;
beforeEach(async () => {
  fixture = await startRelayFixture();
});
afterEach(() => fixture.stop());

type EventRow = Extract<OutboxRow, { readonly kind: "robotics_event" }>;

const eventRow = (filialId: number, isPaused: boolean): EventRow => ({
  key: filialKey(filialId),
  kind: "robotics_event",
  event: {
    organizationId: 1,
    filialId,
    consumerId: null,
    createdAt: "2026-11-20T12:00:00.000Z",
    eventType: isPaused ? "robotics.paused" : "robotics.resumed",
    payload: { filial_id: filialId },
  },
});

async function stored(): Promise<(PublishedRoboticsEvent & { readonly subject: string })[]> {
  const { state } = await fixture.bus.jsm.streams.info(ROBOTICS_EVENTS.name);
  const found = [];
  for (let seq = Math.max(1, state.first_seq); seq <= state.last_seq; seq += 1) {
    const message = await fixture.bus.jsm.streams.getMessage(ROBOTICS_EVENTS.name, { seq });
    if (message === null) throw new Error(`The stream has no message ${seq}.`);
    found.push({ ...publishedRoboticsEventSchema.parse(message.json()), subject: message.subject });
  }
  return found;
}

test("each is published to its filial's subject under its row's id, a filial's in their order", async () => {
  const rows = [true, false, true, false].flatMap((isPaused) => [eventRow(7, isPaused), eventRow(8, isPaused)]);
  await fixture.write(...rows);
  await fixture.startRelay();
  await fixture.delivered();
  const events = await stored();
  expect(events).toHaveLength(8);
  for (const filialId of [7, 8]) {
    const own = events.filter(({ event }) => event.filialId === filialId);
    expect(own.map(({ event }) => event.eventType)).toEqual([
      "robotics.paused",
      "robotics.resumed",
      "robotics.paused",
      "robotics.resumed",
    ]);
    expect(own.map(({ eventId }) => eventId)).toEqual(own.map(({ eventId }) => eventId).toSorted((a, b) => a - b));
    expect(new Set(own.map(({ subject }) => subject))).toEqual(new Set([roboticsEventSubject(filialId)]));
  }
  const ids = await fixture.sql<{ outbox_id: number }[]>`
    select outbox_id from outbox where kind = 'robotics_event' order by outbox_id`;
  const published = events.map(({ eventId }) => eventId).toSorted((a, b) => a - b);
  expect(published).toEqual(ids.map((row) => row.outbox_id));
});

test("one that is published again after a lost answer is stored once", async () => {
  const row = { ...eventRow(7, true), outboxId: 41 };
  const first = await publishRoboticsEvent(fixture.bus, row);
  expect(await publishRoboticsEvent(fixture.bus, row)).toBe(first);
  expect(await publishRoboticsEvent(fixture.bus, { ...row, outboxId: 42 })).toBe(first + 1);
  expect((await stored()).map(({ eventId }) => eventId)).toEqual([41, 42]);
});

test("they wait in the outbox while no relay leads, and are published once one does", async () => {
  await fixture.write(eventRow(7, true));
  expect(await stored()).toEqual([]);
  const relay = await fixture.startRelayProcess();
  await fixture.delivered();
  await relay.kill9();
  await fixture.write(eventRow(7, false));
  await fixture.startRelay();
  await fixture.delivered();
  expect((await stored()).map(({ event }) => event.eventType)).toEqual(["robotics.paused", "robotics.resumed"]);
});
