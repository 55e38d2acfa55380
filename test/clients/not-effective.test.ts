/** What clients do with a credential and a session that are stored and not yet effective. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { attach, loadCredential } from "../../clients/device/attach.ts";
import { createTransport } from "../../clients/device/transport.ts";
import { logIn } from "../../clients/robotics/trigger.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const CREDENTIAL = "dp_00_credential";
const SNAPSHOT = {
  device_id: 7,
  name: "Counter display",
  kind: "customer_display",
  capabilities: ["display_total"],
  status: "active",
  station_name: "Counter 1",
  station_status: "active",
  handoff_target: "",
  blocked_reason: "",
  server_time: "2026-11-20T12:00:00.000Z",
};

const folder = temporaryFolder("attach");
let service: Server;
let baseUrl: string;
/** How often each was asked for. */
const asked = new Map<string, number>();
beforeAll(async () => {
  service = createServer((request, response) => {
    const answer = (status: number, body: object, headers: Record<string, string> = {}): void => {
      response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
    };
    const name = `${request.method} ${request.url?.split("/").at(-2)}`;
    const count = (asked.get(name) ?? 0) + 1;
    asked.set(name, count);
    const notEffective = { "x-effective": "false" };
    if (name === "POST enroll")
      return answer(201, { credential: CREDENTIAL, scopes: [], device: SNAPSHOT }, notEffective);
    if (name === "POST session") return answer(202, { token: "token", effective: false }, notEffective);
    if (name === "DELETE session") return answer(202, { effective: false }, notEffective);
    if (count > 1) return answer(200, SNAPSHOT);
    return answer(401, { code: "credential_invalid", detail: "Unknown.", request_id: "1" });
  });
  await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
  baseUrl = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await new Promise((resolve) => service.close(resolve));
  folder.remove();
});

it("attaching: a credential that is not yet effective is stored, tried again after a 401, and then used", async () => {
  const credentialFile = join(folder.path, "display.json");
  const warnings: object[] = [];
  const attached = await attach({
    credentialFile,
    enrollmentCode: "7K3QX-9M2TB",
    transport: createTransport({ baseUrl, pace: async () => undefined }),
    log: { info: () => undefined, warn: (fields) => warnings.push(fields) },
    signal: new AbortController().signal,
  });
  expect(attached).toMatchObject({ isLive: true, name: "Counter display" });
  expect(asked.get("POST heartbeat")).toBe(2);
  expect(await loadCredential(credentialFile)).toEqual({ device_id: 7, credential: CREDENTIAL });
  expect(warnings).toEqual([{ reason: "not_effective" }]);
});

it("the robotics command: waits for a session that is not yet effective, and signs out of it without an error", async () => {
  const transport = createTransport({ baseUrl, api: "backoffice", pace: async () => undefined });
  const details = { email: "owner@sandbox.example", password: "a long pass phrase" };
  const owner = await logIn({ transport, details, signal: new AbortController().signal });
  expect(asked.get("GET session")).toBe(2);
  await owner.logOut();
  expect(asked.get("DELETE session")).toBe(1);
});
