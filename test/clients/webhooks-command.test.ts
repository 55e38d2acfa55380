/** The webhooks command, as a person types it, with the whole system and a real local target. */

import { createHash, randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import postgres from "postgres";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { UsageError } from "../../clients/command.ts";
import { verifyWebhook } from "../../clients/webhook-verifier.ts";
import { parseCommand, readAccess, TRIGGERS } from "../../clients/webhooks/arguments.ts";
import { checkLocalTarget } from "../../clients/webhooks/listen.ts";
import { WEBHOOK_EVENTS } from "../../gateway/api/robotics/webhook-events.ts";
import { seedSandboxConsumer } from "../../services/bus/messages/consumers.ts";
import { call } from "../../services/bus/operation.ts";
import { apiClient } from "../support/api-client.ts";
import { logIn, type Person } from "../support/people.ts";
import { programEnvironment, type RunningProgram, runProgram } from "../support/running-program.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";

const COMMAND = join(import.meta.dirname, "..", "..", "clients", "cli.ts");
/** An event passes a relay and a stream, and a command starts a process. Other tests may keep the machine busy. */
const WAIT = { timeout: 90_000, interval: 100 };
const TEST_MS = 300_000;

let system: TestSystem;
let folder: TemporaryFolder;
let owner: Person;
let consumerId: number;
const credential = `rc_${randomBytes(32).toString("base64url")}`;
const running: RunningProgram[] = [];

beforeAll(async () => {
  system = await sharedSystem();
  folder = temporaryFolder("webhooks-command");
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  const { organizationId, filialId } = system.sandbox;
  const credentialHash = createHash("sha256").update(credential).digest("hex");
  ({ consumerId } = await call(system.bus.nc, seedSandboxConsumer, { organizationId, filialId, credentialHash }));
  writeSandbox(system.baseUrl);
}, TEST_MS);
afterEach(async () => {
  for (const program of running.splice(0)) {
    program.process.kill("SIGTERM");
    await program.ended;
  }
});
afterAll(async () => {
  await system.stop();
  folder.remove();
});

function writeSandbox(baseUrl: string): void {
  const { owner: person } = system;
  const station = { stationId: 1, devices: [] };
  const people = { owner: person, cashier: person, operator: person };
  const stations = { station, demoStation: station };
  const facts = { baseUrl, certificate: null, ...people, ...stations, robotics: { consumerId, credential } };
  writeFileSync(join(folder.path, "sandbox.json"), JSON.stringify(facts));
}

/** Starts the command with these arguments, with `env` and the sandbox's file, and without other settings. */
function command(args: readonly string[], env: Readonly<Record<string, string>> = {}): RunningProgram {
  const program = runProgram(process.execPath, [COMMAND, "webhooks", ...args], {
    env: programEnvironment({ DATA_DIR: folder.path, ...env }),
  });
  running.push(program);
  return program;
}

/** Runs the command to its end. Returns its exit code and all its output. */
async function run(args: readonly string[], env?: Readonly<Record<string, string>>) {
  const program = command(args, env);
  const exit = await program.ended;
  return { exit, output: program.output().trim() };
}

interface ReceivedRequest {
  readonly header: string | undefined;
  readonly body: string;
  readonly type: string | undefined;
}

/** Starts the program of a consumer. `answer` returns the status for the n-th request. */
async function localTarget(answer: (count: number) => number = () => 204) {
  const received: ReceivedRequest[] = [];
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { "x-service-robotics-signature": header, "content-type": type } = request.headers;
      received.push({ header: header as string | undefined, body: Buffer.concat(chunks).toString(), type });
      response.writeHead(answer(received.length), { location: "http://127.0.0.1:1/" }).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hook`,
    received,
    stop: () => new Promise<void>((resolve) => void server.close(() => resolve())),
  };
}

interface Envelope {
  readonly delivery_id: number;
  readonly event_type: string;
  readonly payload: Readonly<Record<string, unknown>>;
}
const envelopes = (received: readonly ReceivedRequest[]) => received.map(({ body }) => JSON.parse(body) as Envelope);

/** The bodies that the service signs and sends. */
async function storedBodies(ids: readonly number[]): Promise<readonly string[]> {
  const sql = postgres(system.database.url, { max: 1 });
  try {
    const rows = await sql<{ body: string }[]>`
      select body from webhook_deliveries where delivery_id = any(${[...ids]}) order by delivery_id`;
    return rows.map(({ body }) => body);
  } finally {
    await sql.end();
  }
}

it("webhooks listen, when the reader of its output ends: exit code 0", async () => {
  const target = await localTarget();
  const listening = command(["listen", "--forward-to", target.url]);
  listening.process.stdout?.destroy();
  expect([await listening.ended, listening.output()]).toEqual([0, ""]);
  await target.stop();
});

describe("webhooks listen and webhooks trigger", () => {
  it(
    "each type of event: the target receives it in order, signed, and byte for byte as the service sends it",
    async () => {
      const target = await localTarget();
      const listening = command(["listen", "--forward-to", target.url]);
      const secret = (await listening.waitFor(/^Signing with the secret (whsec_\S{43})$/m))[1] as string;
      await listening.waitFor(/Forwarding the deliveries after delivery \d+ to /);
      for (const event of TRIGGERS) {
        const { exit, output } = await run(["trigger", event]);
        expect(exit, output).toBe(0);
      }
      // A task is offered before it is cancelled or expires. No earlier test offers a task or pauses a filial.
      const expected = [
        "serving_task.offered",
        "serving_task.offered",
        "serving_task.cancelled",
        "serving_task.offered",
        "serving_task.expired",
        "robotics.paused",
        "robotics.resumed",
      ];
      await vi.waitFor(() => expect(envelopes(target.received).map((one) => one.event_type)).toEqual(expected), WAIT);
      const ids = envelopes(target.received).map((one) => one.delivery_id);
      expect(ids).toEqual(ids.toSorted((one, other) => one - other));
      for (const { header, body, type } of target.received) {
        expect(verifyWebhook({ header, body, secrets: [secret] })).toBe("valid");
        expect(type).toBe("application/json");
        const event = WEBHOOK_EVENTS.find(({ eventType }) => body.includes(`"${eventType}"`));
        expect(event?.envelope.safeParse(JSON.parse(body)).error).toBeUndefined();
      }
      expect(target.received.map(({ body }) => body)).toEqual(await storedBodies(ids));
      listening.process.kill("SIGINT");
      expect(await listening.ended).toBe(0);
      expect(listening.output()).toContain(`To continue from here, use --since-id ${ids.at(-1)}.`);
      await target.stop();
    },
    TEST_MS,
  );
});

describe("webhooks listen", () => {
  const NOT_LOCAL = /^Deliveries are forwarded to this machine only, and \S+ is not on loopback\.$/;

  it(
    "a target that fails: begins after --since-id, and repeats each delivery until the target answers 2xx",
    async () => {
      const before = await lastDeliveryId();
      for (let count = 0; count < 2; count += 1) expect((await run(["trigger", "robotics.resumed"])).exit).toBe(0);
      // A consumer may send five requests per second.
      const wait = { ...WAIT, interval: 500 };
      await vi.waitFor(async () => expect((await deliveriesAfter(before)).length).toBe(4), wait);
      // First a failure, then a redirect, which the command must not follow.
      const target = await localTarget((count) => [500, 302][count - 1] ?? 200);
      const secret = "whsec_of_my_own";
      const listening = command(["listen", "--forward-to", target.url, "--since-id", `${before}`, "--secret", secret]);
      await listening.waitFor(/robotics\.paused {2}500; again in/);
      await listening.waitFor(/robotics\.paused {2}302; again in/);
      await vi.waitFor(() => expect(target.received.length).toBe(6), WAIT);
      const ids = envelopes(target.received).map((one) => one.delivery_id);
      expect(new Set(ids.slice(0, 3))).toEqual(new Set([ids[0]]));
      expect(ids.slice(2)).toEqual((await deliveriesAfter(before)).map((one) => one.delivery_id));
      for (const { header, body } of target.received)
        expect(verifyWebhook({ header, body, secrets: [secret] })).toBe("valid");
      expect(listening.output()).not.toContain(secret);
      await target.stop();
    },
    TEST_MS,
  );

  it(
    "a gateway that is killed and restarted: waits for it, and forwards later events",
    async () => {
      const target = await localTarget();
      const listening = command(["listen", "--forward-to", target.url]);
      await listening.waitFor(/Forwarding the deliveries after delivery \d+ to /);
      await system.processes.gateway.kill9();
      await listening.waitFor(/does not answer \(.+\); check --base-url and that it runs\. Waiting for the service\./);
      await system.processes.gateway.restart();
      expect((await run(["trigger", "robotics.resumed"])).exit).toBe(0);
      const events = ["robotics.paused", "robotics.resumed"];
      await vi.waitFor(() => expect(envelopes(target.received).map((one) => one.event_type)).toEqual(events), WAIT);
      await target.stop();
    },
    TEST_MS,
  );

  it("a target on another machine: exit code 1, and nothing is forwarded", async () => {
    const { exit, output } = await run(["listen", "--forward-to", "http://192.0.2.1/hook"]);
    expect(output).toMatch(NOT_LOCAL);
    expect(exit).toBe(1);
  });

  it.each([
    "http://10.0.0.1:4000/",
    "http://0.0.0.0:4000/",
    "http://[::ffff:127.0.0.1]:4000/",
    "http://127.0.0.1.example:4000/",
    "http://somewhere.example/",
    "http://169.254.169.254/",
  ])("%s, on another machine: not accepted as a target", async (url) => {
    await expect(checkLocalTarget(url)).rejects.toThrow(NOT_LOCAL);
  });
});

async function lastDeliveryId(): Promise<number> {
  return (await deliveriesAfter(0)).at(-1)?.delivery_id ?? 0;
}
async function deliveriesAfter(sinceId: number): Promise<readonly Envelope[]> {
  const fleet = apiClient(`${system.baseUrl}/api/robotics/v1/`, credential);
  const path = `webhook-deliveries/?since_id=${sinceId}&limit=500`;
  return (await fleet.good<{ webhook_deliveries: Envelope[] }>("GET", path)).webhook_deliveries;
}

describe("a webhooks command that fails", () => {
  const HERE = "http://127.0.0.1:4000/hook";
  it.each<[string, string[], Record<string, string>, RegExp, exit?: number]>([
    [
      "an unknown option",
      ["listen", "--forward", HERE],
      {},
      /^Unknown option '--forward'; --help shows what there is\.$/,
      2,
    ],
    [
      "a wrong credential",
      ["listen", "--forward-to", HERE],
      { ROBOTICS_CREDENTIAL: "rc_wrong" },
      /^.*The service does not accept the consumer's credential; ask the owner for a new one\.$/s,
    ],
    [
      "a wrong password",
      ["trigger", "robotics.paused"],
      { OWNER_EMAIL: "a@b.example", OWNER_PASSWORD: "wrong" },
      /^E-mail address or password is wrong\. \(login_failed\)$/,
    ],
    [
      "an unknown consumer",
      ["trigger", "robotics.paused", "--consumer-id", "999999"],
      {},
      /^The owner has no robotics consumer 999999\.$/,
    ],
  ])("%s: one sentence with the reason, and the exit code", async (_what, args, env, sentence, exitCode = 1) => {
    const { exit, output } = await run(args, env);
    expect(output).toMatch(sentence);
    expect(exit).toBe(exitCode);
  });

  it.each([
    ["no command", [], /^Use webhooks listen or trigger; see --help\.$/],
    ["no target", ["listen"], /^Name the target with --forward-to, for example \S+\.$/],
    [
      "an invalid --since-id",
      ["listen", "--forward-to", HERE, "--since-id", "x"],
      /^--since-id is a number from 0, and not "x"\.$/,
    ],
    [
      "an unknown event",
      ["trigger", "robotics.exploded"],
      /^There is no event "robotics\.exploded" to trigger; there are serving_task\.offered, .*\.$/,
    ],
  ] as const)("%s: its usage, as for an unknown option", (_what, args, sentence) => {
    expect(() => parseCommand(args)).toThrow(UsageError);
    expect(() => parseCommand(args)).toThrow(sentence);
  });

  it("an invalid target, an e-mail address without a password, an invalid base URL: one sentence each", async () => {
    await expect(checkLocalTarget("4000")).rejects.toThrow(/^--forward-to is an http or https address/);
    const access = (args: readonly string[], env: Readonly<Record<string, string>>) => () =>
      readAccess(parseCommand(["trigger", "robotics.paused", ...args]).options, { DATA_DIR: folder.path, ...env });
    expect(access([], { OWNER_EMAIL: "a@b.example" })).toThrow(
      /^Give both the owner's e-mail address and password, or neither\.$/,
    );
    expect(access(["--base-url", "here"], {})).toThrow(/^The base URL is an http or https address, and not "here"\.$/);
  });

  it("trigger at a filial where robotics is paused: exit code 1 and the refusal", async () => {
    const filial = `filials/${system.sandbox.filialId}/robotics`;
    await owner.good("POST", `${filial}/pause/`, { body: { reason: "A test." } });
    const { exit, output } = await run(["trigger", "serving_task.offered"]);
    expect(output).toMatch(/\(robotics_paused\)$/);
    expect(exit).toBe(1);
    await owner.good("POST", `${filial}/resume/`, { body: { reason: "A test." } });
  });

  it("another base URL: the sandbox's password is not sent there", async () => {
    const { exit, output } = await run(["trigger", "robotics.paused", "--base-url", "http://127.0.0.1:9"]);
    expect(output).toMatch(/^Give the owner's log-in with OWNER_EMAIL and OWNER_PASSWORD/);
    expect(exit).toBe(1);
  });

  it("trigger --json: each step as one JSON object", async () => {
    const { exit, output } = await run(["trigger", "robotics.resumed", "--json"]);
    expect(exit, output).toBe(0);
    const steps = output.split("\n").map((line) => JSON.parse(line) as object);
    expect(steps.at(-1)).toEqual({ step: "resumed", filial_id: system.sandbox.filialId });
  });

  it("--help: all events, and exit code 0", async () => {
    const { exit, output } = await run(["--help"]);
    expect(exit).toBe(0);
    for (const event of TRIGGERS) expect(output).toContain(event);
  });
});
