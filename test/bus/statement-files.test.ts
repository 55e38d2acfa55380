/** Statement files in the object store of a real NATS server. */
import { createHash, randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import type { Bus } from "../../services/bus/connection.ts";
import { BUS_LIMITS } from "../../services/bus/limits.ts";
import { deleteFile, FileLostError, listOldFiles, readFile, storeFile } from "../../services/bus/statement-files.ts";
import type { TestServer } from "../support/servers.ts";
import { startPreparedBus } from "../support/start-bus.ts";

let nats: TestServer;
let bus: Bus;
beforeAll(async () => {
  const started = await startPreparedBus();
  ({ nats, bus } = started);
  return started.stop;
});

async function* pieces(...parts: readonly Uint8Array[]): AsyncIterable<Uint8Array> {
  yield* parts;
}
async function contentOf(name: string): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of readFile(bus, name)) parts.push(part);
  return Buffer.concat(parts);
}
const messages = async (): Promise<number> => (await bus.jsm.streams.info("OBJ_STATEMENTS")).state.messages;

describe("a statement file", () => {
  test.each([
    ["empty", []],
    ["of one byte", [randomBytes(1)]],
    ["of exactly two chunks", [randomBytes(2 * BUS_LIMITS.fileChunkBytes)]],
    ["of many chunks that come in uneven pieces", [1, 300_000, 7, 2_000_001, 131_071].map((size) => randomBytes(size))],
  ])("%s is read as it was written", async (_, parts) => {
    const content = Buffer.concat(parts);
    const file = await storeFile(bus, pieces(...parts));
    expect(file).toMatchObject({
      sizeBytes: content.length,
      sha256: createHash("sha256").update(content).digest("hex"),
    });
    expect((await contentOf(file.name)).equals(content)).toBe(true);
  });

  test("two files uploaded at once: each keeps its content", async () => {
    const contents = [randomBytes(700_000), randomBytes(900_000)];
    const files = await Promise.all(contents.map((content) => storeFile(bus, pieces(content))));
    const read = await Promise.all(files.map(({ name }) => contentOf(name)));
    expect(read.map((content, index) => content.equals(contents[index] as Buffer))).toEqual([true, true]);
  });

  test.each([
    [
      "ends and starts again",
      async () => {
        await nats.kill9();
        return () => nats.restart();
      },
    ],
    [
      "stalls",
      () => {
        nats.signal("SIGSTOP");
        return () => nats.signal("SIGCONT");
      },
    ],
  ])("while the server %s: each chunk is stored once", async (_, disturb) => {
    const before = await messages();
    const parts = [1, 2, 3].map(() => randomBytes(BUS_LIMITS.fileChunkBytes));
    let repaired: Promise<void> | undefined;
    async function* disturbed(): AsyncIterable<Uint8Array> {
      for (const part of parts) {
        yield part;
        if (repaired !== undefined) continue;
        const repair = await disturb();
        repaired = delay(BUS_LIMITS.fileChunkAgainMs + 500).then(repair);
      }
    }
    const { name } = await storeFile(bus, disturbed());
    await repaired;
    expect((await contentOf(name)).equals(Buffer.concat(parts))).toBe(true);
    expect((await messages()) - before).toBe(parts.length + 1);
  });

  test("whose upload ends early: nothing is left, and the upload's error is thrown", async () => {
    const before = await messages();
    async function* cut(): AsyncIterable<Uint8Array> {
      yield randomBytes(400_000);
      throw new Error("The client went away.");
    }
    await expect(storeFile(bus, cut())).rejects.toThrow("The client went away.");
    expect(await messages()).toBe(before);
  });

  test("in a full bucket: refused with a stable code, nothing is left; stored when there is space", async () => {
    const name = "OBJ_STATEMENTS";
    const { config, state } = await bus.jsm.streams.info(name);
    await bus.jsm.streams.update(name, { ...config, max_msgs: state.messages + 5 });
    try {
      await expect(storeFile(bus, pieces(randomBytes(2_000_000)))).rejects.toMatchObject({
        refusal: { code: "storage_low" },
      });
      expect(await messages()).toBe(state.messages);
    } finally {
      await bus.jsm.streams.update(name, config);
    }
    const content = randomBytes(2_000_000);
    const file = await storeFile(bus, pieces(content));
    expect((await contentOf(file.name)).equals(content)).toBe(true);
  });

  test("that was deleted: cannot be read, and a second deletion does nothing", async () => {
    const before = await messages();
    const { name } = await storeFile(bus, pieces(randomBytes(400_000)));
    await deleteFile(bus, name);
    await deleteFile(bus, name);
    expect(await messages()).toBe(before);
    await expect(contentOf(name)).rejects.toThrow(FileLostError);
  });

  test("with a slow reader: only requested pieces are read", async () => {
    const { name } = await storeFile(bus, pieces(randomBytes(4_000_000)));
    const { nc } = bus;
    const before = nc.stats().inBytes;
    for await (const part of readFile(bus, name)) {
      expect(part).toHaveLength(BUS_LIMITS.fileChunkBytes);
      break;
    }
    expect(nc.stats().inBytes - before).toBeLessThan(2 * BUS_LIMITS.fileReadChunks * BUS_LIMITS.fileChunkBytes);
  });

  test("that is old: it is in the list of old files, also when its upload was interrupted", async () => {
    const whole = await storeFile(bus, pieces(randomBytes(10)));
    await bus.js.publish("$O.STATEMENTS.C.cut-off", randomBytes(10));
    expect((await listOldFiles(bus, -60_000)).toSorted()).toEqual(expect.arrayContaining(["cut-off", whole.name]));
    expect(await listOldFiles(bus, 60_000)).toEqual([]);
    await deleteFile(bus, "cut-off");
    expect(await listOldFiles(bus, -60_000)).not.toContain("cut-off");
  });

  test("that is new: it is not in that list, also when the machine's clock is a day ahead", async () => {
    const { name } = await storeFile(bus, pieces(randomBytes(10)));
    // Now the process has measured the clock of the bus.
    await bus.clock.measure();
    const realNow = Date.now.bind(Date);
    vi.spyOn(Date, "now").mockImplementation(() => realNow() + 24 * 3_600_000);
    onTestFinished(() => void vi.restoreAllMocks());
    expect(await listOldFiles(bus, 3_600_000)).toEqual([]);
    expect(await listOldFiles(bus, -60_000)).toContain(name);
  });
});
