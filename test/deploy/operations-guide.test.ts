/** `docs/operations.md`: its configurations equal the files, and its numbers those of the program. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { deployLimits } from "../../deploy/limits.ts";
import { readSettings } from "../../deploy/settings.ts";
import { LIMITS } from "../../gateway/limits.ts";
import { LIVE_LIMITS } from "../../gateway/live/live-socket.ts";
import { DISK_FAULTS } from "../../gateway/readiness.ts";
import { BOUNDS } from "../../services/bus/bounds.ts";
import { SERVICES } from "../../services/catalogue.ts";
import { LOGIN_LIMITS, REGISTRY_LIMITS } from "../../services/registry/limits.ts";
import { DISK_TIERS, type DiskTier } from "../../services/runtime/disk-watch.ts";
import { LOG_LIMITS } from "../../services/runtime/limits.ts";
import { shareConnections } from "../../services/runtime/run-services.ts";
import { guideBlock, operationsGuide } from "../support/guide.ts";

const PROXIES = join(import.meta.dirname, "..", "..", "deploy", "proxies");
const LANGUAGES: Readonly<Record<string, string>> = {
  "nginx.conf": "nginx",
  "haproxy.cfg": "haproxy",
  Caddyfile: "caddyfile",
};

/** As the guide's sentence names a service. */
function spoken(name: string): string {
  if (name.includes("-") || name === "registry" || name === "relay") return `the ${name.replace("-", " ")}`;
  return name;
}

describe("the operators' guide", () => {
  it("each proxy's configuration: it is the file in deploy/proxies/, byte by byte", () => {
    expect(readdirSync(PROXIES).toSorted()).toEqual(Object.keys(LANGUAGES).toSorted());
    for (const [file, language] of Object.entries(LANGUAGES)) {
      expect(operationsGuide).toContain(`\`deploy/proxies/${file}\``);
      expect(guideBlock(language, "127.0.0.1:8480", operationsGuide)).toBe(readFileSync(join(PROXIES, file), "utf8"));
    }
  });

  it("a proxy's limits: they follow the gateway's", () => {
    expect(operationsGuide).toContain(`answers within ${LIMITS.requestTimeoutMs / 1_000} seconds`);
    expect(operationsGuide).toContain(`a ping within each ${LIVE_LIMITS.idleSeconds} seconds`);
    expect(operationsGuide).toContain(`The largest body is ${LIMITS.offerBodyBytes / 1_024} KiB`);
  });

  it("the limits of log-ins: they are those of the registry", () => {
    const rows = [
      ["an address, over all accounts", LOGIN_LIMITS.perAddress],
      ["an account from one address", LOGIN_LIMITS.perAccountAndAddress],
      ["an account from all addresses that are new to it", LOGIN_LIMITS.perAccount],
      ["an account from one address that it is known at, right or wrong", LOGIN_LIMITS.perKnownAddress],
      ["an account in one browser that it is known in", LOGIN_LIMITS.perAccountAndAddress],
      ["an account in one browser that it is known in, right or wrong", LOGIN_LIMITS.perKnownAddress],
      ["a change of the password, by session", LOGIN_LIMITS.perSession],
    ] as const;
    for (const [what, { attempts, windowSeconds }] of rows) {
      const window = windowSeconds > 60 ? `${windowSeconds / 60} minutes` : `${windowSeconds} seconds`;
      expect(operationsGuide).toContain(`| ${what} | ${attempts} in ${window}`);
    }
    const { knownAddressDays, knownAddressesPerUser, passwordTurns } = REGISTRY_LIMITS;
    expect(operationsGuide).toContain(
      `for ${knownAddressDays} days after a log-in from there, at ${knownAddressesPerUser} `,
    );
    expect(operationsGuide).toContain(
      `in that browser for ${BOUNDS.knownBrowserDays} days, in ${REGISTRY_LIMITS.knownBrowsersPerUser} browsers at most`,
    );
    expect([passwordTurns.checksAtOnce, operationsGuide.includes("checks three passwords at once")]).toEqual([3, true]);
  });

  it("a full disk: the words are those of /readyz, and the space is what a start needs", () => {
    for (const [tier, fault] of Object.entries(DISK_FAULTS)) {
      const number = DISK_TIERS.indexOf(tier as DiskTier);
      if (fault !== null) expect(operationsGuide).toContain(`| ${number} | \`${fault}\` |`);
    }
    expect(operationsGuide).toContain(`as soon as ${deployLimits.startFreeBytes / 1_024 ** 2} MB are free`);
    expect(operationsGuide).toContain(`the reserve, ${readSettings({}).diskReserveMb} MB unless you set it`);
  });

  it("connections to PostgreSQL: the numbers are those that the processes open", () => {
    const services = Object.keys(SERVICES).filter((name) => shareConnections([name], undefined).total > 0);
    for (const name of services) {
      const { total, of } = shareConnections([name], undefined);
      expect(operationsGuide).toContain(`${of.get(name)} for ${spoken(name)}`);
      expect(total, name).toBe((of.get(name) ?? 0) + 1);
    }
    const all = services.reduce((sum, name) => sum + shareConnections([name], undefined).total, 0);
    expect(operationsGuide).toContain(`Two processes of each service, each alone in its process, may open ${2 * all}.`);
    const [, limit = "", count] =
      /`DATABASE_CONNECTIONS=(\d+)` for each of these (\d+) processes/.exec(operationsGuide) ?? [];
    expect(Number(count)).toBe(2 * services.length);
    // PostgreSQL keeps three of its hundred for administrators. No service refuses the limit.
    expect(Number(limit) * 2 * services.length).toBeLessThanOrEqual(97);
    for (const name of services) expect(shareConnections([name], Number(limit)).total).toBe(Number(limit));
  });

  it("lines about errors: the limits are those of the log", () => {
    const { unknownCallerLines, unknownCallerLinesInAll, knownCallerLines, knownCallersLines } = LOG_LIMITS;
    const { knownCallersLinesInAll, faultLines, faultLinesInAll } = LOG_LIMITS;
    expect(operationsGuide).toContain(`| unknown callers | ${unknownCallerLines} | ${unknownCallerLinesInAll} |`);
    expect(operationsGuide).toContain(
      `| ${knownCallerLines} for each of them, ${knownCallersLines} together | ${knownCallersLinesInAll} |`,
    );
    expect(operationsGuide).toContain(`| ${faultLines} of one message and code | ${faultLinesInAll} |`);
    expect([LOG_LIMITS.windowMs, deployLimits.logFiles]).toEqual([10_000, 1 + 4]);
  });
});
