/** Deliveries to public addresses, in a separate network (Linux lets root, and on most systems every user, create one). */
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
const IPV6 = [
  "ip -6 route add local 2606:4700::/64 dev lo",
  "ip -6 route add local fd00::/8 dev lo",
  "ip -6 address add 2606:4700::9/128 dev lo nodad",
].join(" && ");
const program = join(import.meta.dirname, "programs", "public-network.ts");
const inNetwork = (command: string): string[] => ["--map-root-user", "--net", "sh", "-c", `${NETWORK} && ${command}`];
const canMake = spawnSync("unshare", inNetwork("true")).status === 0;
const canMakeIpv6 = canMake && spawnSync("unshare", inNetwork(IPV6)).status === 0;

async function runProgram(...args: readonly string[]): Promise<unknown> {
  const command = [args.length > 0 ? `${IPV6} && ` : "", `exec "${process.execPath}" "${program}"`, ...args].join(" ");
  const { stdout } = await promisify(execFile)("unshare", inNetwork(command), { timeout: 30_000 });
  return JSON.parse(stdout);
}

interface Sent {
  readonly results: readonly Record<string, unknown>[];
  readonly reached: readonly string[];
  readonly questions: number;
}

describe.runIf(onlyWhere(canMake, "deliveries to public addresses, which need a network namespace"))("a host", () => {
  let outcome: Record<"public" | "flipped" | "private" | "secondAddress" | "own" | "ownSince", Sent>;
  beforeAll(async () => {
    outcome = (await runProgram()) as typeof outcome;
  });

  test("public: reached, and resolved once for a connection", () => {
    const { results, reached, questions } = outcome.public;
    expect(results.map(({ error, address }) => [error, address])).toEqual(
      Array.from({ length: 3 }, () => [null, "8.8.8.8"]),
    );
    expect(results.map(({ dnsMs }) => typeof dnsMs)).toEqual(["number", "object", "object"]);
    expect(reached).toEqual(["8.8.8.8"]);
    expect(questions).toBe(2);
  });

  test("private after its check: reached at the checked address", () => {
    expect(outcome.flipped.results).toMatchObject([{ error: null, address: "8.8.8.8" }]);
    expect(outcome.flipped.reached).toEqual(["8.8.8.8"]);
  });

  test("private: not reached", () => {
    expect(outcome.private.results).toMatchObject([{ error: "target_refused", address: null, totalMs: null }]);
    expect(outcome.private.reached).toEqual([]);
  });

  test("with one dead address: reached at the next", () => {
    expect(outcome.secondAddress.results).toMatchObject([{ error: null, address: "8.8.8.8" }]);
  });

  test("that is this machine by a public address: refused", () => {
    expect(outcome.own.results).toMatchObject([{ error: "target_refused", address: null }]);
  });

  test("that has become this machine: refused, although a connection to it is open", () => {
    expect(outcome.ownSince.results).toMatchObject([
      { error: null, address: "8.8.8.8" },
      { error: "target_refused", address: null, status: null, totalMs: null },
    ]);
    expect(outcome.ownSince.reached).toEqual(["8.8.8.8"]);
  });
});

describe.runIf(onlyWhere(canMakeIpv6, "deliveries by IPv6, which need a network namespace that has it"))(
  "a host of IPv6",
  () => {
    const CASES = ["public", "literal", "private", "privateBeside", "privateLiteral", "secondAddress", "own"] as const;
    let outcome: Record<(typeof CASES)[number] | "ownSince", Sent>;
    beforeAll(async () => {
      outcome = (await runProgram("ipv6")) as typeof outcome;
    });
    const address = "2606:4700::1111";

    test("public: reached, and its connection used again", () => {
      expect(outcome.public.results).toMatchObject([
        { error: null, address, connectMs: expect.any(Number) },
        { error: null, address, connectMs: null },
      ]);
      expect(outcome.public.reached).toEqual([address]);
    });

    test("called by its address: reached, and its certificate must have the address", () => {
      expect(outcome.literal.results).toMatchObject([{ error: "tls_failed", address, dnsMs: null, tlsMs: null }]);
      expect(outcome.literal.questions).toBe(0);
    });

    test.each(["private", "privateBeside", "privateLiteral"] as const)("%s: not reached", (which) => {
      expect(outcome[which].results).toMatchObject([{ error: "target_refused", address: null, totalMs: null }]);
      expect(outcome[which].reached).toEqual([]);
    });

    test("with a dead IPv4 address: reached by IPv6", () => {
      expect(outcome.secondAddress.results).toMatchObject([{ error: null, address }]);
    });

    test("that is this machine by a public address, or becomes it later: refused", () => {
      expect(outcome.own.results).toMatchObject([{ error: "target_refused", address: null }]);
      expect(outcome.ownSince.results).toMatchObject([
        { error: null, address },
        { error: "target_refused", address: null },
      ]);
    });
  },
);
