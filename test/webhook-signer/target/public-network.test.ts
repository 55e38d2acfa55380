/** Deliveries to public addresses, in a network of the test's own (Linux lets root, and mostly everybody, make one). */
import { execFile, spawnSync } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { onlyWhere } from "../../support/only-where.ts";

const NETWORK = [
  "ip link set lo up",
  "ip route add local 8.8.8.0/24 dev lo",
  "ip route add local 10.0.0.0/8 dev lo",
  "ip address add 8.8.8.9/32 dev lo",
].join(" && ");
const program = join(import.meta.dirname, "programs", "public-network.ts");
const inNetwork = (command: string): string[] => ["--map-root-user", "--net", "sh", "-c", `${NETWORK} && ${command}`];
const canMake = spawnSync("unshare", inNetwork("true")).status === 0;

interface Sent {
  readonly results: readonly Record<string, unknown>[];
  readonly reached: readonly string[];
  readonly questions: number;
}

describe.runIf(onlyWhere(canMake, "deliveries to public addresses, which need a network namespace"))("a host", () => {
  let outcome: Record<"public" | "flipped" | "private" | "secondAddress" | "own", Sent>;
  beforeAll(async () => {
    const command = `exec "${process.execPath}" "${program}"`;
    const { stdout } = await promisify(execFile)("unshare", inNetwork(command), { timeout: 30_000 });
    outcome = JSON.parse(stdout) as typeof outcome;
  });

  test("that is public is reached, and looked up once for a connection", () => {
    const { results, reached, questions } = outcome.public;
    expect(results.map(({ error, address }) => [error, address])).toEqual(
      Array.from({ length: 3 }, () => [null, "8.8.8.8"]),
    );
    expect(results.map(({ dnsMs }) => typeof dnsMs)).toEqual(["number", "object", "object"]);
    expect(reached).toEqual(["8.8.8.8"]);
    expect(questions).toBe(2);
  });

  test("that turns private after it was checked is reached where it was checked", () => {
    expect(outcome.flipped.results).toMatchObject([{ error: null, address: "8.8.8.8" }]);
    expect(outcome.flipped.reached).toEqual(["8.8.8.8"]);
  });

  test("that is private is not reached at all", () => {
    expect(outcome.private.results).toMatchObject([{ error: "target_refused", address: null, totalMs: null }]);
    expect(outcome.private.reached).toEqual([]);
  });

  test("of which one address is dead is reached at the next", () => {
    expect(outcome.secondAddress.results).toMatchObject([{ error: null, address: "8.8.8.8" }]);
  });

  test("that is this machine by a public address is refused", () => {
    expect(outcome.own.results).toMatchObject([{ error: "target_refused", address: null }]);
  });
});
