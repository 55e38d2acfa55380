/** The error sentences of `npm run organization` and the other commands when they receive no answer. */
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { runCertificate } from "../../clients/certification/command.ts";
import { newWire, Party } from "../../clients/conformance/http.ts";
import { createTransport } from "../../clients/http/transport.ts";
import { selfSigned } from "../support/certificates.ts";
import { freePort } from "../support/free-port.ts";
import { programEnvironment, runProgram } from "../support/running-program.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";

const CLIENTS = join(import.meta.dirname, "..", "..", "clients");
const COMMAND = join(CLIENTS, "organization.ts");
const CLI = join(CLIENTS, "cli.ts");

let gateway: Server;
let port: number;
let folder: TemporaryFolder;
beforeAll(async () => {
  folder = temporaryFolder("untrusted");
  gateway = createServer(selfSigned({ names: ["127.0.0.1"] })).listen(0, "127.0.0.1");
  await once(gateway, "listening");
  const address = gateway.address();
  port = typeof address === "object" && address !== null ? address.port : 0;
});
afterAll(() => {
  gateway.close();
  folder.remove();
});

async function list(settings: Readonly<Record<string, string>>) {
  const env = programEnvironment({ PLATFORM_KEY: "x".repeat(32), ...settings });
  const command = runProgram(process.execPath, [COMMAND, "list"], { env });
  return { code: await command.ended, output: command.output() };
}

test("a certificate that no authority has signed: the sentence names it, and the setting to trust it", async () => {
  const origin = `https://127.0.0.1:${port}`;
  expect(await list({ BASE_URL: origin })).toEqual({
    code: 1,
    output: `The certificate of ${origin} is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT); name it in GATEWAY_CERTIFICATE_FILE.\n`,
  });
});

test("such a certificate, for the commands of people and for the conformance suite: the same sentence", async () => {
  const baseUrl = `https://127.0.0.1:${port}`;
  const sentence = `The certificate of ${baseUrl} is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT); name it in GATEWAY_CERTIFICATE_FILE.`;
  const { signal } = new AbortController();
  const transport = createTransport({ baseUrl, api: "backoffice", pace: async () => undefined });
  await expect(transport.send({ method: "GET", path: "session/", signal }, z.unknown())).rejects.toThrow(sentence);
  const party = new Party(newWire(baseUrl, signal), "owner", "/api/backoffice/v1/");
  await expect(party.send("GET", "session/")).rejects.toThrow(sentence);
});

test.each(["watch", "simulate"])("such a certificate, for devices %s: the same sentence", async (name) => {
  const origin = `https://127.0.0.1:${port}`;
  const env = programEnvironment({ BASE_URL: origin });
  const args = [CLI, "devices", name, "--file", join(folder.path, `${name}.json`), "--code", "AAAAA-AAAAA"];
  const program = runProgram(process.execPath, args, { env });
  onTestFinished(() => void program.process.kill("SIGKILL"));
  const [line] = await program.waitFor(/^enroll: .*\n/m);
  expect(line).toBe(
    `enroll: The certificate of ${origin} is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT); name it in GATEWAY_CERTIFICATE_FILE.\n`,
  );
});

test("such a certificate, for certificate verify: the same sentence, and how to go on without the service", async () => {
  const origin = `https://127.0.0.1:${port}`;
  const file = join(folder.path, "certificate.json");
  writeFileSync(file, "{}");
  await expect(runCertificate(["verify", file, "--base-url", origin])).rejects.toThrow(
    `The certificate of ${origin} is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT); name it in GATEWAY_CERTIFICATE_FILE. Or give the keys with --key.`,
  );
});

test("a certificate file that does not exist: the sentence names the setting", async () => {
  const settings = { BASE_URL: `https://127.0.0.1:${port}`, GATEWAY_CERTIFICATE_FILE: "/there/is/none" };
  expect(await list(settings)).toEqual({
    code: 1,
    output: "The certificate file /there/is/none does not exist; name the right one in GATEWAY_CERTIFICATE_FILE.\n",
  });
});

test("no service at the address: the sentence has the error code", async () => {
  const origin = `http://127.0.0.1:${await freePort()}`;
  expect(await list({ BASE_URL: origin })).toEqual({
    code: 1,
    output: `The service at ${origin} does not answer (ECONNREFUSED); check --base-url and that it runs.\n`,
  });
});
