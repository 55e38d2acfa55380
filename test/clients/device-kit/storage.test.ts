/** The storage adapters of the device kit: they read what they have written, also after a crash; a failed write is an error. */
import { chmodSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { display } from "../../../clients/device-kit/display.ts";
import { hostPlatform, type Platform } from "../../../clients/device-kit/platform.ts";
import { readRecord } from "../../../clients/device-kit/record.ts";
import { bridgeStorage } from "../../../clients/device-kit/storage/bridge.ts";
import { fileStorage } from "../../../clients/device-kit/storage/file.ts";
import { type IndexedDb, indexedDbStorage } from "../../../clients/device-kit/storage/indexed-db.ts";
import { memoryStorage } from "../../../clients/device-kit/storage/memory.ts";
import { type TemporaryFolder, temporaryFolder } from "../../support/temporary-folder.ts";

let folder: TemporaryFolder;
beforeEach(() => {
  folder = temporaryFolder("kit-storage");
});
afterEach(() => folder.remove());

/** The part of IndexedDB that the adapter uses. Its requests end later, as in a browser. */
function fakeIndexedDb(failure?: Error): IndexedDb {
  const rows = new Map<string, unknown>();
  const later = <T extends object>(target: T, type: string) => ({
    ...target,
    addEventListener(wanted: string, listener: () => void): void {
      if (wanted === type) setImmediate(listener);
    },
  });
  const request = (result: unknown) => later({ result, error: null }, "success");
  const store = {
    get: (key: string) => request(rows.get(key)),
    put: (value: unknown, key: string) => request(failure === undefined ? rows.set(key, value) : undefined),
    delete: (key: string) => request(rows.delete(key)),
  };
  const transaction = () =>
    later({ objectStore: () => store, error: failure ?? null }, failure === undefined ? "complete" : "abort");
  const database = { createObjectStore: () => undefined, transaction, close: () => undefined };
  return { open: () => later({ result: database, error: null }, "success") };
}

function bridge() {
  let stored: string | null = null;
  return {
    readRecord: () => stored,
    writeRecord: (text: string): void => {
      stored = text;
    },
    removeRecord: (): void => {
      stored = null;
    },
  };
}

describe("the storage adapters", () => {
  it.each([
    ["memory", () => memoryStorage()],
    ["file", () => fileStorage(join(folder.path, "deep", "er", "device.json"))],
    ["IndexedDB", () => indexedDbStorage(fakeIndexedDb())],
    ["bridge", () => bridgeStorage(bridge())],
  ])("%s: reads nothing, then the last write, then nothing again after a removal", async (_name, create) => {
    const storage = create();
    expect(await storage.read()).toBeNull();
    await storage.write("one");
    await storage.write("two");
    expect(await storage.read()).toBe("two");
    await storage.remove();
    expect(await storage.read()).toBeNull();
  });

  it("a write that fails: an error", async () => {
    await expect(indexedDbStorage(fakeIndexedDb(new Error("quota"))).write("x")).rejects.toThrow("quota");
    await expect(bridgeStorage({ ...bridge(), writeRecord: () => undefined }).write("x")).rejects.toThrow(
      /did not store/,
    );
    writeFileSync(join(folder.path, "taken"), "");
    for (const path of [join(folder.path, "taken", "device.json"), "/proc/devices-of-a-test/device.json"])
      await expect(fileStorage(path).write("x")).rejects.toThrow();
  });

  it("a file whose rights cannot be changed, for example on a read-only disk: can be read", async () => {
    expect(await fileStorage("/proc/self/limits").read()).toContain("Limit");
  });

  it("a file: only its owner can read it, and no other file is left in the folder", async () => {
    const path = join(folder.path, "device.json");
    const storage = fileStorage(path);
    await storage.write("one");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    chmodSync(path, 0o644);
    await storage.read();
    expect(statSync(path).mode & 0o777).toBe(0o600);
    await storage.write("two");
    expect(readdirSync(folder.path)).toEqual(["device.json"]);
  });
});

describe("two writes of a device at the same time", () => {
  it("a slow first write: does not replace the newer record", async () => {
    let stored = "";
    let isFirst = true;
    const gate = Promise.withResolvers<void>();
    const storage = {
      ...memoryStorage(),
      async write(text: string) {
        const waits = isFirst;
        isFirst = false;
        if (waits) await gate.promise;
        stored = text;
      },
    };
    const texts = { name: "", kind: "", status: "", station_name: "", station_status: "", handoff_target: "" };
    const device = {
      device_id: 7,
      capabilities: [],
      blocked_reason: "",
      server_time: "2026-11-20T12:00:00Z",
      ...texts,
    };
    const host = hostPlatform();
    const platform: Platform = {
      ...host,
      nowMs: () => host.nowMs() * 200,
      setTimeout: (callback, ms) => host.setTimeout(callback, ms / 200),
      async fetch(url) {
        if (url.endsWith("enroll/"))
          return Response.json({ credential: "c", device }, { headers: { "x-effective": "false" } });
        return url.endsWith("heartbeat/") ? Response.json(device) : new Response(null, { status: 503 });
      },
    };
    const screen = display({ baseUrl: "http://127.0.0.1:9", storage, code: "A", platform, render: () => undefined });
    // The first write counts as failed by now, and the service has accepted the credential.
    await vi.waitFor(() => expect(screen.state()).toMatchObject({ savedRevision: 2 }));
    gate.resolve();
    await vi.waitFor(() => expect(stored).not.toBe(""));
    await new Promise(setImmediate);
    screen.stop();
    expect(JSON.parse(stored)).toMatchObject({ credential: "c", accepted: true });
  });
});

describe("the record of a device, as it is stored", () => {
  it.each(["", '{"device_id": 7, "cred', '{"device_id": "7", "credential": "c"}', "\0\0", "null", '{"device_id": 7}'])(
    "the damaged text %j: no record",
    (text) => expect(readRecord(text)).toBe("damaged"),
  );

  it("a record of an earlier program: the first poll launches nothing", () => {
    expect(readRecord('{"device_id": 7, "credential": "c", "later": 1}')).toMatchObject({
      credential: "c",
      accepted: true,
      first_poll_pending: true,
      attempt: null,
      reports: [],
    });
    expect(readRecord(null)).toBeNull();
  });
});
