/** How a process gets access to a real nats-server: by password over TLS with a private authority, and by a JWT account. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { nkeys } from "nats";
import { afterAll, beforeAll, describe, expect, inject, it, vi } from "vitest";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import type { ServerAccess } from "../../services/bus/nats-server.ts";
import type { LineLog } from "../../services/runtime/log.ts";
import { parseSettings, sharedSettingsSchema } from "../../services/runtime/settings.ts";
import { createAuthority } from "../support/certificates.ts";
import { freePort } from "../support/free-port.ts";
import { jwtAccounts } from "../support/nats-accounts.ts";
import { QUIET } from "../support/quiet-log.ts";
import { type RunningProgram, runProgram } from "../support/running-program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const WAIT = { timeout: 30_000, interval: 50 };
const folder = temporaryFolder("access");
const pathOf = (name: string): string => join(folder.path, name);
const writeFile = (name: string, text: string): string => {
  writeFileSync(pathOf(name), text);
  return pathOf(name);
};

interface StartedServer {
  readonly server: RunningProgram;
  readonly port: number;
}
async function startServer(name: string, lines: readonly string[], at?: number): Promise<StartedServer> {
  const port = at ?? (await freePort());
  mkdirSync(pathOf(name), { recursive: true });
  const jetStream = `jetstream { store_dir: ${JSON.stringify(pathOf(name))} }`;
  const config = writeFile(`${name}.conf`, [`listen: "127.0.0.1:${port}"`, jetStream, ...lines].join("\n"));
  const server = runProgram(inject("natsBinary").path, ["--config", config]);
  await server.waitFor(/Server is ready/);
  return { server, port };
}

async function stopServer(server: RunningProgram | undefined): Promise<void> {
  server?.process.kill("SIGINT");
  await server?.ended;
}

/** Connects like a process, by environment variables. */
async function connectWith(environment: NodeJS.ProcessEnv, log: LineLog = QUIET): Promise<Bus> {
  const { natsUrl: url, natsAccess: access } = parseSettings(sharedSettingsSchema, environment);
  return await connectBus({ url, access, name: "test", log, withinMs: 300 });
}

/** The streams of the user's account. */
async function streamsOf(bus: Bus): Promise<readonly string[]> {
  const names: string[] = [];
  for await (const name of bus.jsm.streams.names()) names.push(name);
  await bus.close();
  return names;
}

afterAll(() => folder.remove());

describe("a NATS server with passwords and certificates of a private authority", () => {
  const authority = createAuthority();
  let server: RunningProgram | undefined;
  let url: string;
  const files = {
    NATS_CA_FILE: writeFile("ca.pem", authority.cert),
    ...(({ cert, key }) => ({
      NATS_CERT_FILE: writeFile("client.pem", cert),
      NATS_KEY_FILE: writeFile("client.key", key),
    }))(authority.issue({ names: ["device-payments"] })),
  };
  beforeAll(async () => {
    const { cert, key } = authority.issue({ names: ["127.0.0.1"] });
    const tls = { cert_file: writeFile("s.pem", cert), key_file: writeFile("s.key", key), ca_file: files.NATS_CA_FILE };
    const started = await startServer("passwords", [
      `tls: ${JSON.stringify({ ...tls, verify: true })}`,
      'accounts: { PAY: { jetstream: enabled, users: [{user: "payments", password: "a secret"}] },',
      '            OTHER: { jetstream: enabled, users: [{user: "other", password: "another"}] } }',
    ]);
    server = started.server;
    url = `tls://payments:a%20secret@127.0.0.1:${started.port}`;
  });
  afterAll(() => stopServer(server));

  it("the right password, authority and client certificate: the process uses the streams of the user's account", async () => {
    const bus = await connectWith({ NATS_URL: url, ...files });
    await bus.jsm.streams.add({ name: "ONE", subjects: ["one"] });
    expect(await streamsOf(bus)).toEqual(["ONE"]);
    const other = await connectWith({ NATS_URL: url.replace("payments:a%20secret", "other:another"), ...files });
    expect(await streamsOf(other)).toEqual([]);
  });

  it("the settings lack the private authority: the error names NATS_CA_FILE", async () => {
    await expect(connectWith({ NATS_URL: url })).rejects.toMatchObject({
      code: "nats_unreachable",
      message: expect.stringContaining("name the authority's certificate in NATS_CA_FILE"),
    });
  });

  describe.concurrent("the server refuses the process's certificate: the error has the reason, also with two servers", () => {
    const identity = (name: string, { cert, key }: { readonly cert: string; readonly key: string }) => ({
      NATS_CERT_FILE: writeFile(`${name}.pem`, cert),
      NATS_KEY_FILE: writeFile(`${name}.key`, key),
    });
    const names = ["device-payments"];
    const hourAgo = new Date(Date.now() - 3_600_000);
    const none = { NATS_CERT_FILE: undefined, NATS_KEY_FILE: undefined };
    it.each([
      ["it has none", none, "the server demands a certificate of this process"],
      ["it is of another authority", identity("other", createAuthority("Other").issue({ names })), "does not trust"],
      [
        "it has expired",
        identity("expired", authority.issue({ names, notBefore: new Date(0), notAfter: hourAgo })),
        "has expired",
      ],
    ])("%s", async (_, identified, why) => {
      const several = `${url},${url}`;
      await expect(connectWith({ NATS_URL: several, ...files, ...identified })).rejects.toMatchObject({
        code: "nats_unreachable",
        message: expect.stringMatching(new RegExp(`(?:${why}|ends the connection after TLS).*NATS_CERT_FILE`)),
      });
    });
  });

  it.concurrent("a certificate expires while the process runs: logged once, and with a new file the bus is up", async ({
    onTestFinished,
  }) => {
    const identity = authority.issue({ names: ["device-payments"] });
    const lost = authority.issue({ names: ["device-payments"], notBefore: new Date(0), notAfter: new Date(1_000) });
    const own = {
      NATS_CERT_FILE: writeFile("own.pem", identity.cert),
      NATS_KEY_FILE: writeFile("own.key", identity.key),
    };
    const { cert, key } = authority.issue({ names: ["127.0.0.1"] });
    const tls = { cert_file: writeFile("o.pem", cert), key_file: writeFile("o.key", key), ca_file: files.NATS_CA_FILE };
    const lines = [`tls: ${JSON.stringify({ ...tls, verify: true })}`];
    const first = await startServer("outage", lines);
    const warnings: string[] = [];
    const log = { info: () => undefined, warn: (_: object, message: string) => warnings.push(message) };
    const bus = await connectWith({ NATS_URL: `tls://127.0.0.1:${first.port}`, ...files, ...own }, log);
    onTestFinished(() => bus.close());
    await stopServer(first.server);
    writeFile("own.pem", lost.cert);
    writeFile("own.key", lost.key);
    const { server: second } = await startServer("outage", lines, first.port);
    onTestFinished(() => stopServer(second));
    await vi.waitFor(() => expect(warnings).toHaveLength(2), WAIT);
    expect(warnings[0]).toBe("the bus is down");
    expect(warnings[1]).toMatch(/(?:has expired|ends the connection after TLS).*NATS_CERT_FILE/);
    writeFile("own.pem", identity.cert);
    writeFile("own.key", identity.key);
    await vi.waitFor(() => expect(bus.isUp()).toBe(true), WAIT);
    expect(warnings).toHaveLength(2);
  });

  it("a wrong password: the error does not contain the password", async () => {
    const connection = connectWith({ NATS_URL: url.replace("a%20secret", "guess"), ...files });
    await expect(connection).rejects.toMatchObject({
      code: "nats_refused",
      message: expect.stringMatching(
        /^The NATS at 127\.0\.0\.1:\d+ \(NATS_URL\) cannot be used: the server refuses the user/,
      ),
    });
  });

  it("settings that contradict each other: parsing throws before the process connects", () => {
    const parse = (environment: NodeJS.ProcessEnv) => () => parseSettings(sharedSettingsSchema, environment);
    const { NATS_CA_FILE, NATS_CERT_FILE } = files;
    expect(parse({ NATS_URL: "nats://127.0.0.1", NATS_CA_FILE })).toThrow("it needs tls:// in NATS_URL");
    expect(parse({ NATS_URL: url, NATS_CERT_FILE })).toThrow("set NATS_CERT_FILE and NATS_KEY_FILE together");
    expect(parse({ NATS_URL: url, NATS_CA_FILE: pathOf("s.key") })).toThrow("a certificate in PEM");
    expect(parse({ NATS_URL: url, NATS_CA_FILE: pathOf("lost.pem") })).toThrow(
      "The setting NATS_CA_FILE is not usable: the file cannot be read: there is no such file or folder (ENOENT).",
    );
    const otherKey = { NATS_CERT_FILE, NATS_KEY_FILE: pathOf("s.key") };
    expect(parse({ NATS_URL: url, ...otherKey })).toThrow("it does not belong to the certificate in NATS_CERT_FILE");
    expect(parse({ NATS_URL: url, NATS_CREDENTIALS_FILE: NATS_CA_FILE })).toThrow("NATS credentials, as nsc writes");
  });
});

describe("a NATS server with JWT accounts", () => {
  const { account, configuration, credentials } = jwtAccounts();
  let server: RunningProgram | undefined;
  let url: string;
  beforeAll(async () => {
    const started = await startServer("jwt", configuration);
    server = started.server;
    url = `nats://127.0.0.1:${started.port}`;
  });
  afterAll(() => stopServer(server));

  it("a valid credentials file: the process uses the streams of the user's account", async () => {
    const bus = await connectWith({
      NATS_URL: url,
      NATS_CREDENTIALS_FILE: writeFile("good.creds", credentials(account)),
    });
    await bus.jsm.streams.add({ name: "ONE", subjects: ["one"] });
    expect(await streamsOf(bus)).toEqual(["ONE"]);
  });

  it.each([
    ["is missing", (file: string) => rmSync(file)],
    ["is half written", (file: string) => writeFileSync(file, "-----BEGIN NATS USER JWT-----\n")],
  ])("the credentials file %s when the connection is lost: the process connects again", async (_, spoil) => {
    const file = writeFile("renewed.creds", credentials(account));
    const messages: string[] = [];
    const note = (_fields: object, message: string) => void messages.push(message);
    const environment = { NATS_URL: url, NATS_CREDENTIALS_FILE: file };
    const bus = await connectWith(environment, { info: note, warn: note });
    try {
      spoil(file);
      await bus.nc.reconnect();
      await vi.waitFor(() => expect(messages).toEqual(["the bus is down", "the bus is back"]), WAIT);
    } finally {
      await bus.close();
    }
  });

  it("credentials of an account that the server does not know: the error names NATS_CREDENTIALS_FILE", async () => {
    const access = {
      credentialsFile: writeFile("bad.creds", credentials(nkeys.createAccount())),
    } satisfies ServerAccess;
    await expect(connectBus({ url, access, name: "test", log: QUIET, withinMs: 300 })).rejects.toMatchObject({
      code: "nats_refused",
      message: expect.stringContaining("the server refuses the credentials of NATS_CREDENTIALS_FILE"),
    });
  });
});

describe("a NATS server whose password is changed while a process runs", () => {
  it("the process logs the refusal once, with the next step, and continues when its password is valid again", async () => {
    const user = (password: string) => `authorization { user: payments, password: ${password} }`;
    const { server, port } = await startServer("changed", [user("first")]);
    const config = readFileSync(pathOf("changed.conf"), "utf8");
    const warnings: string[] = [];
    const log = { ...QUIET, warn: (_fields: object, message: string) => void warnings.push(message) };
    const bus = await connectBus({ url: `nats://payments:first@127.0.0.1:${port}`, name: "test", log });
    const change = (password: string): void => {
      writeFile("changed.conf", config.replace(user("first"), user(password)));
      server.process.kill("SIGHUP");
    };
    change("second");
    const refused = expect.stringMatching(
      /^The NATS at 127\.0\.0\.1:\d+ \(NATS_URL\) cannot be used: the server refuses the user, .*; correct them\.$/,
    );
    await expect.poll(() => warnings, { timeout: 5_000 }).toContainEqual(refused);
    // In this time, the process dials several more times.
    await delay(1_500);
    expect(warnings).toEqual(["the bus is down", refused]);
    change("first");
    await expect.poll(() => bus.isUp(), { timeout: 5_000 }).toBe(true);
    await bus.close();
    await stopServer(server);
  });
});
