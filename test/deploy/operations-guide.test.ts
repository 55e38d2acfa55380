/** `docs/operations.md`: its configurations equal the files, and its numbers equal those of the program. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { deployLimits } from "../../deploy/limits.ts";
import { readSettings } from "../../deploy/settings.ts";
import { LIMITS } from "../../gateway/limits.ts";
import { LIVE_LIMITS } from "../../gateway/live/live-socket.ts";
import { DISK_FAULTS } from "../../gateway/readiness.ts";
import { BOUNDS } from "../../services/bus/bounds.ts";
import { LOGIN_LIMITS, REGISTRY_LIMITS } from "../../services/registry/limits.ts";
import { DISK_TIERS, type DiskTier } from "../../services/runtime/disk-watch.ts";
import { LOG_LIMITS } from "../../services/runtime/limits.ts";
import { shareConnections } from "../../services/runtime/run-services.ts";
import { SERVICES } from "../../services/service-list.ts";
import { PAUSE_MS } from "../cluster/trial-client.ts";
import { guideBlock, operationsGuide } from "../support/guide.ts";

const DEPLOY = join(import.meta.dirname, "..", "..", "deploy");
const PROXIES = join(DEPLOY, "proxies");
const PRODUCTION = join(DEPLOY, "production");
const LANGUAGES: Readonly<Record<string, string>> = {
  "nginx.conf": "nginx",
  "haproxy.cfg": "haproxy",
  Caddyfile: "caddyfile",
};

/** The name of a service in the guide's sentence. */
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
    expect(operationsGuide).toContain(
      `All bodies but statement files have at most ${LIMITS.offerBodyBytes / 1_024} KiB`,
    );
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

  it("the secrets of NATS: each row names the step that the servers need", () => {
    const steps = (what: string): string => cellsOf(what)[1] ?? "";
    expect(steps("certificates of the NATS servers")).toContain("then reload one server after the other");
    expect(steps("authority of NATS' certificates")).toContain("both authorities first");
    const config = readFileSync(join(PRODUCTION, "nats", "nats-server.conf"), "utf8");
    const passwords = [...config.matchAll(/password: \$(\w+)/g)].map(([, name = ""]) => name);
    expect(passwords).toEqual(["ROUTE_PASSWORD", "PAYMENTS_PASSWORD", "ADMIN_PASSWORD"]);
    expect(steps("password of the routes (`ROUTE_PASSWORD`")).toContain("restart all servers at once");
    expect(steps("password of the account `SYS` (`ADMIN_PASSWORD`")).toContain("reload");
    expect(steps("user and password of NATS")).toContain("reload each server");
  });

  it("the restore: a session that had ended is valid for as long as the registry opens one", () => {
    expect(operationsGuide).toContain(
      `for up to ${REGISTRY_LIMITS.sessionLifetimeMs / 3_600_000} hours after the log-in`,
    );
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
    // PostgreSQL keeps three of its hundred connections for administrators. Each service accepts the limit.
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

  it("the failure table: each measured time is the longest of the printed results of its fault", () => {
    const faults = printedFaults("chaos.txt");
    expect(faults).toHaveLength(200);
    const longest = (name: RegExp): string => seconds(faults.filter((each) => name.test(each.name)).map(gapOf));
    const slowest = (name: RegExp, of = faults): string =>
      seconds(of.filter((each) => name.test(each.name)).map(({ slowestMs }) => slowestMs));
    const service = "process of (?!stations|gateway)";
    const late = (name: RegExp): string =>
      faults
        .filter((each) => name.test(each.name) && !isOnTime(each))
        .map(({ slowestMs }) => seconds([slowestMs]))
        .toSorted()
        .join(" and ");
    const isOnTime = ({ slowestMs, withinMs }: PrintedFault): boolean => slowestMs <= withinMs;
    const rows = [
      [
        "a NATS server is killed or stalls",
        `${longest(/^kill the leader/)} killed, ${longest(/^stall a leader/)} stalled`,
      ],
      ["a NATS server that follows stalls", longest(/^stall a follower/)],
      [
        "a NATS server is stopped in order",
        `${longest(/^stop a server/)}; the slowest answer ${slowest(/^stop a server/)}`,
      ],
      ["one of three NATS servers is cut off", longest(/^isolate/)],
      ["two of three NATS servers are cut off", longest(/^cut one pair/)],
      ["an actor host is killed or stalls", slowest(/^(kill|stall) a process of stations/)],
      ["an actor host is stopped in order", slowest(/^stop a process of stations/)],
      ["a process of a service is killed", slowest(new RegExp(`^kill a ${service}`))],
      ["a process of a service stalls", slowest(new RegExp(`^stall a ${service}`))],
      [
        "a process of a service is stopped in order",
        [slowest(new RegExp(`^stop a ${service}`), faults.filter(isOnTime)), late(new RegExp(`^stop a ${service}`))]
          .filter((part) => part !== "")
          .join("; late: "),
      ],
      ["a gateway is killed", longest(/^kill a process of gateway/)],
      ["a gateway stalls", slowest(/^stall a process of gateway/)],
      ["a gateway is stopped in order", longest(/^stop a process of gateway/)],
    ] as const;
    for (const [what, measured] of rows) expect(cellsOf(what).at(-1), what).toContain(measured);
    const bounds = [
      ["a NATS server is killed or stalls", /^(kill the leader|stall a leader)/],
      ["a NATS server is stopped in order", /^stop a server/],
      ["one of three NATS servers is cut off", /^isolate/],
      ["two of three NATS servers are cut off", /^cut one pair/],
      ["an actor host is killed or stalls", /^(kill|stall) a process of stations/],
      ["an actor host is stopped in order", /^stop a process of stations/],
      ["a process of a service is killed", new RegExp(`^kill a ${service}`)],
      ["a process of a service stalls", new RegExp(`^stall a ${service}`)],
      ["a process of a service is stopped in order", new RegExp(`^stop a ${service}`)],
      ["a gateway is killed", /^kill a process of gateway/],
      ["a gateway stalls", /^stall a process of gateway/],
      ["a gateway is stopped in order", /^stop a process of gateway/],
    ] as const;
    for (const [what, name] of bounds) {
      const ofRow = faults.filter((each) => name.test(each.name));
      const [bound = "no"] = new Set(ofRow.map(({ withinMs }) => shownBound(withinMs)));
      expect(cellsOf(what).at(-3), what).toContain(bound);
      // A client tries again after a pause.
      for (const each of ofRow) expect(gapOf(each), what).toBeLessThanOrEqual(each.withinMs + PAUSE_MS);
    }
    const text = printed("chaos.txt");
    const sum = (what: string): string =>
      [...text.matchAll(new RegExp(`^(\\d+) ${what}(?! by)`, "gm"))]
        .reduce((total, [, count]) => total + Number(count), 0)
        .toLocaleString("en");
    expect(operationsGuide).toContain(`${sum("collections")} collections and ${sum("serving tasks")} serving tasks`);
    const newest = printed("rare-faults.txt")
      .split(/^`npm run chaos/m)
      .findLast((run) => run.includes("| lose what"));
    const oneDirection = faultsOf(newest ?? "").filter(({ name }) => name.startsWith("lose what"));
    expect(cellsOf("two of three NATS servers are cut off").at(-1)).toContain(
      `${seconds(oneDirection.map(gapOf))} in one direction`,
    );
    const deaths = faults.filter(({ name }) => name.startsWith("kill the leader"));
    const stations = Math.max(...deaths.map(({ stations: count }) => count));
    expect(operationsGuide).toContain(
      `None of the ${deaths.length} deaths of a server was noticed by more than ${stations} of the 12 stations.`,
    );
  });

  it("the failure table: each measured time is in a printed result, unless it is of a single node", () => {
    const all = ["chaos.txt", "rare-faults.txt"].flatMap(printedFaults);
    const times = new Set(
      all.flatMap((each) => [gapOf(each), each.commandsMs, each.slowestMs]).map((each) => seconds([each])),
    );
    const [, table = ""] = operationsGuide.split("| what fails |");
    const rows = table.slice(0, table.indexOf("\n\n")).split("\n").slice(2);
    const measured = rows.map((row) => row.split(" | ").at(-1) ?? "").filter((cell) => !cell.includes("single node"));
    expect(measured.length).toBeGreaterThan(25);
    for (const cell of measured) for (const [time] of cell.matchAll(/\d+\.\d s/g)) expect(times, cell).toContain(time);
  });

  it("processes that are killed while they end: each row has the printed results of its kind", () => {
    const ending = printedFaults("rare-faults.txt").filter(({ name }) => name.endsWith(" that ends"));
    const of = (kind: string, isLate: boolean) =>
      ending.filter(({ name, slowestMs, withinMs }) => name.includes(kind) && slowestMs > withinMs === isLate);
    const claims = operationsGuide.split("\n").filter((line) => line.includes("killed while it ended"));
    expect(claims).toHaveLength(2);
    expect(claims[0]).toMatch(/^\| an actor host is killed /);
    expect(claims[0]).toContain(
      `killed while it ended, ${seconds(of("stations", false).map(({ slowestMs }) => slowestMs))}`,
    );
    const late = of("stations", true);
    expect(claims[0]).toContain(
      `${seconds(late.map(gapOf))} without success and ${seconds(late.map(({ slowestMs }) => slowestMs))}`,
    );
    expect(claims[1]).toMatch(/^\| a process of a service is killed /);
    expect(claims[1]).toContain(
      `killed while it ended, ${seconds(of("settlement", false).map(({ slowestMs }) => slowestMs))}`,
    );
  });
});

interface PrintedFault {
  readonly name: string;
  readonly commandsMs: number;
  readonly displaysMs: number;
  readonly withinMs: number;
  readonly slowestMs: number;
  readonly stations: number;
}

function printed(file: string): string {
  return readFileSync(join(import.meta.dirname, "..", "bench", "results", file), "utf8");
}

/** The cells of the row that begins with this text. */
function cellsOf(what: string): readonly string[] {
  return (operationsGuide.split("\n").find((line) => line.startsWith(`| ${what}`)) ?? "").split(" | ");
}

const shownBound = (ms: number): string => (ms < 1_000 ? `${ms} ms` : `${ms / 1_000} s`);

/** The rows of the tables that `npm run chaos` has printed. */
function printedFaults(file: string): readonly PrintedFault[] {
  return faultsOf(printed(file));
}

function faultsOf(text: string): readonly PrintedFault[] {
  return text.split("\n").flatMap((line) => {
    const [, name = "", , ...numbers] = line.split("|").map((cell) => cell.trim());
    const [commandsMs, displaysMs, withinMs, slowestMs, stations] = numbers.map((cell) => Number.parseInt(cell, 10));
    // The control has no bound.
    if (commandsMs === undefined || !(Number(withinMs) >= 0) || stations === undefined) return [];
    return [{ name, commandsMs, displaysMs, withinMs, slowestMs, stations } as PrintedFault];
  });
}

const gapOf = ({ commandsMs, displaysMs }: PrintedFault): number => Math.max(commandsMs, displaysMs);
const seconds = (measuredMs: readonly number[]): string => `${(Math.max(...measuredMs) / 1_000).toFixed(1)} s`;
