/** systemd's units, and the samples for NATS and PostgreSQL: what they start exists, and the servers take them. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, inject, it } from "vitest";
import { connectBus } from "../../services/bus/connection.ts";
import { QUIET } from "../bus/waiting.ts";
import { freePort } from "../support/free-port.ts";
import { PRODUCTION_SERVICES, settingsOfArguments } from "../support/published-processes.ts";
import { runProgram } from "../support/running-program.ts";
import { startPostgres } from "../support/servers.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const FOLDER = join(import.meta.dirname, "..", "..", "deploy", "production");
const NODE = "/opt/device-payments/node_modules/.bin/node ";

/** The values of a key of a unit, in order. */
function valuesOf(unit: string, key: string): readonly string[] {
  return [...unit.matchAll(new RegExp(`^${key}=(.*)$`, "gm"))].map(([, value = ""]) => value);
}

describe("systemd's units", () => {
  const files = readdirSync(join(FOLDER, "systemd"));
  const units = files.filter((file) => file.endsWith(".service"));
  const read = (file: string): string => readFileSync(join(FOLDER, "systemd", file), "utf8");

  it("each service: starts a process that exists, as an unprivileged user that can write nothing", async () => {
    const named: string[] = [];
    for (const file of units) {
      const unit = read(file);
      const [start = ""] = valuesOf(unit, "ExecStart");
      expect(start.startsWith(NODE), file).toBe(true);
      const args = start.slice(NODE.length).split(" ");
      expect((await settingsOfArguments(args)).needed.length, file).toBeGreaterThan(0);
      if (args[0] === "services/main.ts") named.push(...args.slice(1));
      expect(valuesOf(unit, "User"), file).toEqual(["device-payments"]);
      expect(valuesOf(unit, "ProtectSystem"), file).toEqual(["strict"]);
      expect(valuesOf(unit, "NoNewPrivileges"), file).toEqual(["true"]);
      expect(valuesOf(unit, "EnvironmentFile"), file).toHaveLength(2);
    }
    expect(new Set(named)).toEqual(new Set(PRODUCTION_SERVICES));
  });

  it("each process: is started again whatever ended it, has a metrics port of its own, and time to end", () => {
    const processes = units.filter((file) => !file.includes("migrate"));
    const ports = processes.flatMap((file) =>
      valuesOf(read(file), "Environment").filter((each) => each.includes("PORT")),
    );
    expect(new Set(ports).size).toBe(processes.length);
    for (const file of processes) {
      expect(valuesOf(read(file), "Restart"), file).toEqual(["always"]);
      expect(Number(valuesOf(read(file), "TimeoutStopSec")[0]), file).toBeGreaterThan(10);
    }
    const [wanted = ""] = valuesOf(read("device-payments.target"), "Wants");
    expect(wanted.split(" ").toSorted()).toEqual(processes.toSorted());
  });
});

describe("the sample for NATS", () => {
  it("a server of the cluster: starts with it, takes the account's user, and waits for the disk", async () => {
    const folder = temporaryFolder("nats-sample");
    const [client, monitor, route] = [await freePort(), await freePort(), await freePort()];
    const sample = readFileSync(join(FOLDER, "nats", "nats-server.conf"), "utf8");
    // One server of its own, on free ports and in a folder of this test.
    const changed = sample
      .replace("0.0.0.0:4222", `127.0.0.1:${client}`)
      .replace("0.0.0.0:8222", `127.0.0.1:${monitor}`)
      .replace("0.0.0.0:6222", `127.0.0.1:${route}`)
      .replace("/var/lib/nats", folder.path);
    const config = join(folder.path, "nats-server.conf");
    writeFileSync(config, changed);
    const routes = { ROUTE_PASSWORD: "r1", ROUTE_1: `nats://route:r1@127.0.0.1:${route}` };
    const server = runProgram(inject("natsBinary").path, ["--config", config], {
      env: {
        SERVER_NAME: "nats-1",
        PAYMENTS_PASSWORD: "p1",
        ADMIN_PASSWORD: "a1",
        ...routes,
        ROUTE_2: routes.ROUTE_1,
        ROUTE_3: routes.ROUTE_1,
      },
    });
    try {
      await server.waitFor(/Server is ready/);
      const monitored = await fetch(`http://127.0.0.1:${monitor}/jsz`);
      expect(await monitored.json()).toMatchObject({ config: { sync_always: true } });
      const refused = connectBus({
        url: `nats://payments:wrong@127.0.0.1:${client}`,
        name: "t",
        log: QUIET,
        patienceMs: 1,
      });
      await expect(refused).rejects.toMatchObject({ code: "nats_refused" });
    } finally {
      server.process.kill("SIGKILL");
      await server.ended;
      folder.remove();
    }
  });
});

describe("the sample for PostgreSQL", () => {
  it("a server: starts with each of its settings", async () => {
    const sample = readFileSync(join(FOLDER, "postgresql", "postgresql.conf"), "utf8");
    const settings = [...sample.matchAll(/^(\w+) = (\S+)$/gm)].map(
      ([, name = "", value = ""]) => [name, value] as const,
    );
    expect(settings.length).toBeGreaterThan(20);
    const server = await startPostgres({ settings: Object.fromEntries(settings) });
    await server.stop();
  });
});
