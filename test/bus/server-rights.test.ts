/** The error of a process whose account or user at a real nats-server lacks a needed right: one sentence. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it, vi } from "vitest";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import type { LineLog } from "../../services/runtime/log.ts";
import { freePort } from "../support/free-port.ts";
import { QUIET } from "../support/quiet-log.ts";
import { type RunningProgram, runProgram } from "../support/running-program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** `deny` are the permissions of the user, as in the server's configuration. */
const user = (name: string, deny = "{}"): string => `{ user: ${name}, password: secret, permissions: ${deny} }`;

const ACCOUNTS = `accounts {
  PLAIN { users: [ ${user("plain")} ] }
  SMALL { jetstream: { max_streams: 2, max_file: 100M, max_mem: 1M }, users: [ ${user("small")} ] }
  RIGHTS {
    jetstream: enabled
    users: [
      ${user("asks_nothing", '{ publish: { deny: ["$JS.API.>"] } }')}
      ${user("receives_nothing", '{ subscribe: { deny: ["_INBOX.>"] } }')}
      ${user("creates_nothing", '{ publish: { deny: ["$JS.API.STREAM.CREATE.>"] } }')}
      ${user("serves_nothing", '{ subscribe: { deny: ["registry.>"] } }')}
    ]
  }
}`;

describe("a NATS server with accounts", () => {
  const folder = temporaryFolder("rights");
  let server: RunningProgram;
  let address: string;
  beforeAll(async () => {
    const port = await freePort();
    const config = join(folder.path, "server.conf");
    const jetStream = `jetstream { store_dir: ${JSON.stringify(join(folder.path, "js"))} }`;
    writeFileSync(config, [`listen: "127.0.0.1:${port}"`, jetStream, ACCOUNTS].join("\n"));
    server = runProgram(inject("natsBinary").path, ["--config", config]);
    await server.waitFor(/Server is ready/);
    address = `127.0.0.1:${port}`;
  });
  afterAll(async () => {
    server.process.kill("SIGINT");
    await server.ended;
    folder.remove();
  });
  const connectAs = (name: string, log: LineLog = QUIET): Promise<Bus> =>
    connectBus({ url: `nats://${name}:secret@${address}`, name: "test", log, withinMs: 300 });

  it("an account without JetStream: the sentence names the account, and not the server", async () => {
    await expect(connectAs("plain")).rejects.toMatchObject({
      code: "nats_without_jetstream",
      message: `The NATS at ${address} (NATS_URL) cannot be used: JetStream is switched off for the account of its user; switch it on for that account in the server's configuration.`,
    });
  });

  it.each([
    ["asks_nothing", /^publish to \$JS\.API\.INFO$/],
    ["receives_nothing", /^subscribe to _INBOX\.[\w.*]+$/],
  ])("the user %s: the sentence has the missing right", async (name, what) => {
    const error: unknown = await connectAs(name).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "nats_denied", exitCode: 1 });
    const [, denied] =
      /^The NATS at \S+ \(NATS_URL\) cannot be used: its user may not (.*); allow it everything in its account\.$/.exec(
        (error as Error).message,
      ) ?? [];
    expect(denied).toMatch(what);
  });

  it("a user that may not create streams: the command that creates them names the missing right", async () => {
    const bus = await connectAs("creates_nothing");
    await expect(ensureStreams(bus, { replicas: 1, logs: 1 })).rejects.toMatchObject({
      code: "nats_denied",
      message: `The NATS at ${address} (NATS_URL) cannot be used: its user may not publish to $JS.API.STREAM.CREATE.KV_INSTALLATION; allow it everything in its account.`,
    });
    await bus.close();
  });

  it("a subscription that is refused while a process runs: it logs the sentence once", async () => {
    const warnings: string[] = [];
    const bus = await connectAs("serves_nothing", {
      ...QUIET,
      warn: (_fields, message) => void warnings.push(message),
    });
    for (const subject of ["registry.one", "registry.two"]) bus.nc.subscribe(subject, { callback: () => undefined });
    await vi.waitFor(() => expect(warnings).not.toEqual([]));
    await bus.nc.flush();
    expect(warnings).toEqual([
      `The NATS at ${address} (NATS_URL) cannot be used: its user may not subscribe to registry.one; allow it everything in its account.`,
    ]);
    await bus.close();
  });

  it("an account that allows too few streams: the sentence has the next step", async () => {
    const bus = await connectAs("small");
    await expect(ensureStreams(bus, { replicas: 1, logs: 1 })).rejects.toMatchObject({
      code: "nats_storage",
      message: expect.stringMatching(
        /cannot keep the stream \w+: maximum number of streams reached; raise the limits of JetStream for this account, or free space\.$/,
      ) as string,
    });
    await bus.close();
  });
});
