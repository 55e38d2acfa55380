/** What `npm run organization` and the other commands print when they receive no answer, or one of a change that waits. */
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer as createPlainServer } from "node:http";
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

async function organization(args: readonly string[], settings: Readonly<Record<string, string>>) {
  const env = programEnvironment({ PLATFORM_KEY: "x".repeat(32), ...settings });
  const command = runProgram(process.execPath, [COMMAND, ...args], { env });
  return { code: await command.ended, output: command.output() };
}

const list = (settings: Readonly<Record<string, string>>) => organization(["list"], settings);

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

test("a new password of a suspended owner, whose sessions have not ended yet: it states both", async () => {
  const owner = { user_id: 12, email: "kim@harbour.example", name: "Kim", status: "suspended" };
  const answer = { owner, initial_password: "4mJ0xkQ2", effective: false };
  const service = createPlainServer((_, response) => {
    response.writeHead(202, { "content-type": "application/json" }).end(JSON.stringify(answer));
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void service.close());
  await once(service, "listening");
  const address = service.address();
  const settings = { BASE_URL: `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}` };
  const args = ["reset-password", "--owner-email", owner.email];
  const [text, json] = await Promise.all([organization(args, settings), organization([...args, "--json"], settings)]);
  expect(text.output.trimEnd().split("\n")).toEqual([
    "kim@harbour.example is suspended; another owner can resume this person.",
    "kim@harbour.example then logs in with the initial password 4mJ0xkQ2",
    "The password is not shown again; the owner changes it after the log-in.",
    "The owner's sessions end soon, not yet at every gateway.",
  ]);
  expect(JSON.parse(json.output)).toEqual(answer);
});
