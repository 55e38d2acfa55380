/** `npm start` with TLS at the gateway itself, by a certificate that no authority has signed and that names another host. */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { selfSigned } from "../support/certificates.ts";
import { sandboxFacts } from "../support/demo-station.ts";
import { startPorts } from "../support/free-port.ts";
import { isRunning, programEnvironment, type RunningProgram, runProgram } from "../support/running-program.ts";
import { serverFolder } from "../support/temporary-folder.ts";

const CHECKOUT = join(import.meta.dirname, "..", "..");
const LINES_MS = 120_000;
/** A whole start, on a machine that is busy with other tests. */
const TEST_MS = 300_000;
const folder = serverFolder("tls-start");
const certFile = join(folder.path, "cert.pem");
const keyFile = join(folder.path, "key.pem");
let program: RunningProgram;

const run = promisify(execFile);
const paste = async (lines: string): Promise<string> => {
  const { stdout, stderr } = await run("bash", ["-c", lines], { timeout: LINES_MS });
  return stdout + stderr;
};
/** One client of `clients/`, with nothing but the data folder. */
const client = (name: string, ...args: readonly string[]): Promise<string> =>
  run(process.execPath, [join(CHECKOUT, "clients", `${name}.ts`), ...args], {
    env: programEnvironment({ DATA_DIR: folder.path }),
    timeout: LINES_MS,
  }).then(({ stdout }) => stdout);

beforeAll(async () => {
  const { cert, key } = selfSigned({ names: ["pay.example"] });
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key);
  const env = { ...process.env, NATS_URL: "", DATABASE_URL: "", ...(await startPorts()), DATA_DIR: folder.path };
  program = runProgram(process.execPath, [join(CHECKOUT, "deploy", "start.ts")], {
    env: { ...env, TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile },
  });
  await program.waitFor(/Ctrl-C stops within/);
}, TEST_MS);
afterAll(async () => {
  if (isRunning(program.pid)) program.process.kill("SIGTERM");
  await program.ended;
  folder.remove();
});

test("a start with TLS: the virtual devices attach, and every printed address of the gateway is https", () => {
  const output = program.output();
  expect(output).toContain("virtual-companion: up.");
  expect(output).toContain("virtual-display: up.");
  const { baseUrl, links } = sandboxFacts(folder.path);
  expect(baseUrl).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
  expect(Object.values(links).filter((link) => link.startsWith(baseUrl))).toHaveLength(5);
  expect(output).toContain(`Device payments is running at ${baseUrl}`);
  expect(output).not.toContain(baseUrl.replace("https:", "http:"));
});

test("the demo by QR with TLS: it ends well, run and as curl lines, and the callback comes over TLS too", {
  timeout: TEST_MS,
}, async () => {
  for (const output of [await client("demo", "qr"), await paste(await client("demo", "qr", "--curl"))]) {
    expect(output).toContain('"state":"qr"');
    expect(output).toMatch(/"attestation":\{"by":"provider"/);
    expect(output).toContain('"state":"paid"');
  }
});

test("a server with another certificate: the curl lines send nothing to it", async () => {
  const other = selfSigned({ names: ["127.0.0.1"] });
  let requests = 0;
  const server = createServer(other, (_request, response) => {
    requests += 1;
    response.end();
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const base = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const lines = (await client("demo", "robot", "--curl")).replace(/^BASE=.*$/m, `BASE=${base}`);
  expect(lines).toContain("curl ");
  expect(await paste(lines)).toMatch(/curl: \(90\)/);
  expect(requests).toBe(0);
  await new Promise((resolve) => {
    server.close(resolve);
  });
});

test("the commands with TLS: they find the service and trust its certificate", { timeout: TEST_MS }, async () => {
  expect(await client("organization", "list")).toMatch(/^\d+\tSandbox/m);
  expect(await client("cli", "webhooks", "trigger", "serving_task.offered")).not.toBe("");
});
