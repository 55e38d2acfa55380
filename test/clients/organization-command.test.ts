/** The error sentences of `npm run organization` and the other commands when they receive no answer. */
import { once } from "node:events";
import { createServer, type Server } from "node:https";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { newWire, Party } from "../../clients/conformance/http.ts";
import { createTransport } from "../../clients/http/transport.ts";
import { selfSigned } from "../support/certificates.ts";
import { freePort } from "../support/free-port.ts";
import { programEnvironment, runProgram } from "../support/running-program.ts";

const COMMAND = join(import.meta.dirname, "..", "..", "clients", "organization.ts");

let gateway: Server;
let port: number;
beforeAll(async () => {
  gateway = createServer(selfSigned({ names: ["127.0.0.1"] })).listen(0, "127.0.0.1");
  await once(gateway, "listening");
  const address = gateway.address();
  port = typeof address === "object" && address !== null ? address.port : 0;
});
afterAll(() => void gateway.close());

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
