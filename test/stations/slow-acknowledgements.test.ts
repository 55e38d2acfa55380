/** A station log and a bucket of leases that acknowledge slowly, as on a slow disk or behind a slow link. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Actor } from "../../machines/actor.ts";
import { PARTITION_COUNT } from "../../machines/partition.ts";
import { Link } from "../cluster/link.ts";
import { type StationWorld, startStationWorld } from "./station-world.ts";

const OTHER_CASHIER: Actor = { kind: "cashier", id: 8, name: "Ben" };

let world: StationWorld;
let link: Link;
beforeAll(async () => {
  world = await startStationWorld();
  link = await Link.open(Number(new URL(world.nats.url).port));
});
afterAll(async () => {
  link.join();
  await world.stop();
  await link.close();
});

it("acknowledgements take 520 ms: the host keeps its partitions, commits and refuses", async () => {
  const url = Object.assign(new URL(world.nats.url), { port: link.port }).href;
  const { host } = await world.startHost({ natsUrl: url, leaseUrl: url });
  const stationId = await world.openStation();
  link.slow(260);
  let fewest = PARTITION_COUNT;
  const watch = setInterval(() => (fewest = Math.min(fewest, host.owned().size)), 10);
  expect((await world.ask(stationId, { type: "lease_renew" })).reply.ok).toBe(true);
  const { reply } = await world.ask(stationId, { type: "lease_acquire" }, { actor: OTHER_CASHIER });
  expect(reply).toMatchObject({ ok: false, code: "station_leased" });
  clearInterval(watch);
  expect(fewest).toBe(PARTITION_COUNT);
});
