/** How a device attaches: its credential survives a restart, stays private, and may become effective later. */
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { attach, loadCredential, saveCredential } from "../../clients/device/attach.ts";
import { createTransport, DeviceStopped } from "../../clients/device/transport.ts";
import { logIn } from "../../clients/webhooks/trigger.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";

const stored = { device_id: 7, credential: "dp_2a_secret" };
let folder: TemporaryFolder;
let path: string;

beforeEach(() => {
  folder = temporaryFolder("credential");
  path = join(folder.path, "companion.json");
});
afterEach(() => folder.remove());

describe("the credential file", () => {
  it("a saved file: only its owner can read it, also below a folder that did not exist", async () => {
    const deep = join(folder.path, "deep", "er", "companion.json");
    await saveCredential(deep, stored);
    expect(statSync(deep).mode & 0o777).toBe(0o600);
    expect(await loadCredential(deep)).toEqual(stored);
  });

  it("a file that others can read, for example from a backup: loading it makes it private again", async () => {
    await saveCredential(path, stored);
    chmodSync(path, 0o644);
    await loadCredential(path);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it("a file whose rights cannot be changed, for example on a read-only disk: it is read", async () => {
    await expect(loadCredential("/proc/self/limits")).rejects.toThrow(/is damaged/);
  });

  it("a second save: it replaces the file as a whole and leaves nothing beside it", async () => {
    await saveCredential(path, stored);
    await saveCredential(path, { ...stored, credential: "dp_2a_newer" });
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({ device_id: 7, credential: "dp_2a_newer" });
    expect(readdirSync(folder.path)).toEqual(["companion.json"]);
  });

  it("a missing file: there is no credential; half a file: the device stops with one sentence", async () => {
    expect(await loadCredential(path)).toBeUndefined();
    writeFileSync(path, '{"device_id": 7, "cred');
    await expect(loadCredential(path)).rejects.toThrow(DeviceStopped);
    await expect(loadCredential(path)).rejects.toThrow(/damaged; delete it and enroll again\.$/);
  });

  it.each(["", '{"device_id": 7, "cred', '{"device_id": "7"}', "\0\0\0"])(
    "a damaged file, when the device has a code: it counts as missing, and the device reports it: %j",
    async (text) => {
      let damages = 0;
      const onDamaged = (): void => {
        damages += 1;
      };
      writeFileSync(path, text);
      expect(await loadCredential(path, onDamaged)).toBeUndefined();
      expect(damages).toBe(1);
      await saveCredential(path, stored);
      expect(await loadCredential(path, onDamaged)).toEqual(stored);
      expect(damages).toBe(1);
    },
  );

  it("a file that cannot be written: the device stops with one sentence", async () => {
    writeFileSync(join(folder.path, "taken"), "");
    for (const file of [join(folder.path, "taken", "companion.json"), "/proc/devices-of-a-test/companion.json"])
      await expect(saveCredential(file, stored)).rejects.toThrow(/^The credential file .* cannot be written\.$/);
  });
});

describe("a change that is stored and not yet effective", () => {
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

  let service: Server;
  let baseUrl: string;
  /** How many requests of each kind have come. */
  const requests = new Map<string, number>();
  beforeAll(async () => {
    service = createServer((request, response) => {
      const answer = (status: number, body: object, headers: Record<string, string> = {}): void => {
        response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
      };
      const name = `${request.method} ${request.url?.split("/").at(-2)}`;
      const count = (requests.get(name) ?? 0) + 1;
      requests.set(name, count);
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
  afterAll(() => new Promise((resolve) => service.close(resolve)));

  it("a new credential: the device stores it, repeats its heartbeat after a 401, and then uses it", async () => {
    const warnings: object[] = [];
    const attached = await attach({
      credentialFile: path,
      enrollmentCode: "7K3QX-9M2TB",
      transport: createTransport({ baseUrl, pace: async () => undefined }),
      log: { info: () => undefined, warn: (fields) => warnings.push(fields) },
      signal: new AbortController().signal,
    });
    expect(attached).toMatchObject({ isLive: true, name: "Counter display" });
    expect(requests.get("POST heartbeat")).toBe(2);
    expect(await loadCredential(path)).toEqual({ device_id: 7, credential: CREDENTIAL });
    expect(warnings).toEqual([{ reason: "not_effective" }]);
  });

  it("a new session: the webhooks command waits for it, and signs out of it without an error", async () => {
    const transport = createTransport({ baseUrl, api: "backoffice", pace: async () => undefined });
    const details = { email: "owner@sandbox.example", password: "a long pass phrase" };
    const owner = await logIn({ transport, details, signal: new AbortController().signal });
    expect(requests.get("GET session")).toBe(2);
    await owner.logOut();
    expect(requests.get("DELETE session")).toBe(1);
  });
});
