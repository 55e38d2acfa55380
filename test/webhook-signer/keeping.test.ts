/** The signer's default settings, and the records that prevent a second delivery. */
import { readFileSync } from "node:fs";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rotateWebhookSecretBodySchema } from "../../gateway/api/backoffice/webhook-endpoints.ts";
import { registerWebhookEndpoint, rotateWebhookSecret } from "../../services/bus/messages/webhook-endpoints.ts";
import { removeExpired } from "../../services/runtime/retention.ts";
import { parseSettings } from "../../services/runtime/settings.ts";
import { signerRetention } from "../../services/webhook-signer/retention.ts";
import { startWebhookSignerService } from "../../services/webhook-signer/service.ts";
import { signerSettingsSchema } from "../../services/webhook-signer/settings.ts";
import { refusalOf, type SignerWorld, startSignerWorld, waitFor } from "./signer-world.ts";

let world: SignerWorld;
beforeAll(async () => {
  world = await startSignerWorld({ signers: 0 });
});
afterAll(() => world.stop());

const DAY_MS = 86_400_000;

test("loopback as a target: only when the operator allows it, which the log names, and never for a live consumer", async () => {
  const { WEBHOOK_ALLOW_LOOPBACK: _allowed, ...bare } = world.environment;
  expect(parseSettings(signerSettingsSchema, bare).WEBHOOK_ALLOW_LOOPBACK).toBe(false);
  const fleet = await world.openFleet();
  const live = await world.openFleet({ mode: "live" });
  const register = ({ owner: caller, consumerId }: typeof fleet) =>
    world.ask(registerWebhookEndpoint, { caller, consumerId, url: world.receiver.url("/loopback") });
  const closed = await world.addSignerProcess({ WEBHOOK_ALLOW_LOOPBACK: undefined });
  for (const one of [fleet, live]) {
    expect(await refusalOf(register(one))).toMatchObject({ code: "webhook_target_refused", reason: "host_not_public" });
  }
  expect(readFileSync(closed.logFile, "utf8")).not.toMatch(/WEBHOOK_ALLOW_LOOPBACK/);
  await closed.stop();
  const open = await world.addSignerProcess();
  expect(readFileSync(open.logFile, "utf8")).toMatch(/"level":(?:40|"warn").*WEBHOOK_ALLOW_LOOPBACK is on/);
  await register(fleet);
  expect(await refusalOf(register(live))).toMatchObject({ code: "webhook_target_refused", reason: "host_not_public" });
  await open.stop();
});

test("a rotation whose request names no overlap: the old secret signs for a day", async () => {
  const { overlap_seconds: seconds } = rotateWebhookSecretBodySchema.parse({});
  expect(seconds).toBe(DAY_MS / 1_000);
  const signer = await world.addSigner();
  const fleet = await world.openFleet();
  const { endpointId } = await world.addEndpoint(fleet, "/default-overlap");
  const request = { caller: fleet.owner, endpointId, overlapMs: seconds * 1_000 };
  const { endpoint } = await world.ask(rotateWebhookSecret, request);
  const ends = endpoint.secrets.map((secret) => secret.expiresAtMs);
  expect(ends[0]).toBeNull();
  expect(Math.abs((ends[1] ?? 0) - Date.now() - DAY_MS)).toBeLessThan(10_000);
  await signer.stop();
});

test("the only signer starts after events have waited for long: it takes them from the bus, and logs no loss", async () => {
  const fleet = await world.openFleet();
  await world.emitMany([fleet], 3);
  await world.database`update outbox set delivered_at = now() - interval '1 minute'`;
  const lines: string[] = [];
  const log = pino({ level: "warn" }, { write: (line: string) => void lines.push(line) });
  const signer = await startWebhookSignerService({ ...world.serviceDeps, environment: world.environment, log });
  await world.untilStatus(fleet, "unsent", 3);
  await signer.stop();
  expect(lines.filter((line) => line.includes("outbox"))).toEqual([]);
});

test("taken events: recorded for as long as the outbox has them, and for at least three days", async () => {
  const signer = await world.addSigner();
  const fleet = await world.openFleet();
  await world.emitMany([fleet], 3);
  const ids = await waitFor("the events", async () => {
    const rows = await world.database<{ event_id: number }[]>`
      select event_id from webhook_events where filial_id = ${fleet.filialId} order by event_id`;
    return rows.length === 3 && rows.map((row) => row.event_id);
  });
  await signer.stop();
  const [old = 0, kept = 0, young = 0] = ids;
  const age = (days: number, some: readonly number[]) => world.database`
    update webhook_events set taken_at = now() - ${days}::float8 * interval '1 day'
    where event_id = any(${[...some]}::bigint[])`;
  await age(4, [old, kept]);
  await age(2.9, [young]);
  // The outbox has deleted one old event and one that is not old.
  await world.database`delete from outbox where outbox_id = any(${[old, young]}::bigint[])`;
  await removeExpired(signerRetention(world.database, 30), world.serviceDeps.log);
  const left = await world.database<{ event_id: number }[]>`
    select event_id from webhook_events where filial_id = ${fleet.filialId} order by event_id`;
  expect(left.map((row) => row.event_id)).toEqual([kept, young]);
});

const days = (text: string) => signerSettingsSchema.shape.WEBHOOK_RETENTION_DAYS.safeParse(text).data;

test("deliveries are kept for a whole number of days from 1 to 365", () => {
  expect(["1", "30", "365"].map(days)).toEqual([1, 30, 365]);
  expect(["0", "0.5", "1.5", "366", "-1", "month"].map(days)).toEqual(Array.from({ length: 6 }, () => undefined));
});
