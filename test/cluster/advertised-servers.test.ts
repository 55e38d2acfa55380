/** A cluster whose servers name each other to their clients, as every cluster does unless it is configured otherwise. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connectBus } from "../../services/bus/connection.ts";
import { BUS_LIMITS } from "../../services/bus/limits.ts";
import { QUIET } from "../support/quiet-log.ts";
import { NatsCluster, NODES } from "./nats-cluster.ts";

let cluster: NatsCluster;
beforeAll(async () => {
  cluster = await NatsCluster.start({ isDirect: true, advertises: true });
});
afterAll(() => cluster.stop());

/** Connections that clients have opened at all servers so far. */
async function dials(): Promise<number> {
  const counts = await Promise.all(
    NODES.map((node) =>
      cluster.monitor<{ total_connections: number }>(node, "varz").then((is) => is.total_connections),
    ),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

function withToken(token: string): string {
  return cluster
    .url()
    .split(",")
    .map((address) => Object.assign(new URL(address), { username: token }).href)
    .join(",");
}

describe("a start with a wrong token", () => {
  // Before the fix, the client dialled the servers that each of them names hundreds of times a second, without end.
  test(
    "it ends with one sentence, after one dial of each server",
    async () => {
      const before = await dials();
      const connecting = connectBus({ url: withToken("wrong"), name: "test", log: QUIET });
      await expect(connecting).rejects.toMatchObject({
        code: "nats_refused",
        message: expect.stringContaining("the server refuses the user, the password or the token of the address"),
      });
      expect((await dials()) - before).toBeLessThanOrEqual(NODES.length);
    },
    BUS_LIMITS.firstConnectMs,
  );
});

describe("a process whose NATS_URL names one server", () => {
  test("it warns; a process whose NATS_URL names all servers does not", async () => {
    const warnings: string[] = [];
    const log = { ...QUIET, warn: (_fields: object, message: string) => void warnings.push(message) };
    for (const url of [cluster.url(), cluster.nodeUrl("n1")]) {
      expect(warnings).toEqual([]);
      await (await connectBus({ url, name: "test", log, awaitsQuorum: true })).close();
    }
    expect(warnings).toEqual(["NATS_URL names one server of its cluster: name all"]);
  });
});
