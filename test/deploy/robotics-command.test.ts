/**
 * The developer of a consumer on their own machine: `npm start` and `npm run robotics`, as `docs/webhooks.md` has them, with
 * nothing but what the first writes into its data folder for the second.
 */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { verifyWebhook, type WebhookVerdict } from "../../clients/webhook-verifier.ts";
import type { SandboxFacts } from "../../deploy/sandbox/facts.ts";
import { logIn } from "../support/people.ts";
import { isRunning, type RunningProgram, runProgram } from "../support/running-program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const CHECKOUT = join(import.meta.dirname, "..", "..");
const BOOTSTRAP = join(CHECKOUT, "deploy", "bootstrap.mjs");
const TEST_MS = 300_000;
const PATIENCE = { timeout: 90_000, interval: 100 };
const folder = temporaryFolder("robotics-deployment");
const started: RunningProgram[] = [];

afterAll(async () => {
  for (const program of started) {
    if (isRunning(program.pid)) program.process.kill("SIGTERM");
    await program.ended;
  }
  folder.remove();
});

/** What `npm start` and `npm run robotics --` run. */
function run(script: string, args: readonly string[], environment: NodeJS.ProcessEnv = {}): RunningProgram {
  const env = { PATH: process.env["PATH"], HOME: process.env["HOME"], DATA_DIR: folder.path, ...environment };
  const program = runProgram(process.execPath, [BOOTSTRAP, script, ...args], { cwd: CHECKOUT, env });
  started.push(program);
  return program;
}

/** On a free port, unless it must be the one of before. */
async function startService(port = "0"): Promise<RunningProgram> {
  const program = run("deploy/start.ts", [], { PORT: port, WEBHOOK_ALLOW_LOOPBACK: "true" });
  await program.waitFor(/Ctrl-C drains and stops/);
  return program;
}

const command = (...args: readonly string[]): RunningProgram => run("clients/robotics.ts", args);

const facts = (): SandboxFacts => JSON.parse(readFileSync(join(folder.path, "sandbox.json"), "utf8")) as SandboxFacts;

interface Taken {
  readonly path: string | undefined;
  readonly header: string | undefined;
  readonly body: string;
}

async function startConsumer() {
  const taken: Taken[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk: string) => {
      body += chunk;
    });
    request.on("end", () => {
      const header = request.headers["x-service-robotics-signature"] as string | undefined;
      taken.push({ path: request.url, header, body });
      response.writeHead(204).end();
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: (path: string): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`,
    at: (path: string): readonly Taken[] => taken.filter((one) => one.path === path),
    stop: () => (server.closeAllConnections(), once(server.close(), "close")),
  };
}

const verdictOf = ({ header, body }: Taken, secret: string): WebhookVerdict =>
  verifyWebhook({ header, body, secrets: [secret] });
const typeOf = ({ body }: Taken): string => (JSON.parse(body) as { event_type: string }).event_type;

async function trigger(event: string): Promise<void> {
  const program = command("trigger", event);
  expect(await program.ended, program.output()).toBe(0);
}

test("a local program gets what happens, forwarded and by the service itself, also over a restart of the service", {
  timeout: TEST_MS,
}, async () => {
  const consumer = await startConsumer();
  const first = await startService();
  const { baseUrl, owner: person, robotics } = facts();
  const owner = await logIn(baseUrl, "backoffice", person);
  const { secret: own } = await owner.good<{ secret: string }>("POST", "webhook-endpoints/", {
    body: { consumer_id: robotics.consumerId, url: consumer.url("/own") },
  });
  const listening = command("listen", "--forward-to", consumer.url("/forwarded"));
  const secret = (await listening.waitFor(/^Signing with the secret (whsec_\S{43})$/m))[1] as string;
  await listening.waitFor(/Forwarding what comes behind delivery \d+ to /);
  await trigger("serving_task.cancelled");

  const events = ["serving_task.offered", "serving_task.cancelled"];
  await vi.waitFor(() => {
    expect(consumer.at("/forwarded").map(typeOf)).toEqual(events);
    expect(new Set(consumer.at("/own").map(typeOf))).toEqual(new Set(events));
  }, PATIENCE);
  for (const one of consumer.at("/forwarded")) expect(verdictOf(one, secret)).toBe("valid");
  for (const one of consumer.at("/own")) expect(verdictOf(one, own)).toBe("valid");

  first.process.kill("SIGTERM");
  expect(await first.ended).toBe(0);
  await listening.waitFor(/does not answer\. Waiting for it\./);
  // Whoever listens knows the address of before.
  const second = await startService(new URL(baseUrl).port);
  await trigger("robotics.resumed");
  await vi.waitFor(
    () => expect(consumer.at("/forwarded").map(typeOf)).toEqual([...events, "robotics.paused", "robotics.resumed"]),
    PATIENCE,
  );
  listening.process.kill("SIGINT");
  expect(await listening.ended).toBe(0);
  expect(listening.output()).toMatch(/^Go on where this ended with --since-id \d+\.$/m);
  second.process.kill("SIGTERM");
  expect(await second.ended).toBe(0);
  await consumer.stop();
});
