import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { archivedFiles, archivedRows, isArchive } from "../../../services/reconciliation/formats/archive.ts";
import { type StatementRecord, StatementRefusedError } from "../../../services/reconciliation/formats/format.ts";
import { FORMAT_LIMITS } from "../../../services/reconciliation/formats/limits.ts";
import { lineRecord, moved } from "../../../services/reconciliation/formats/records.ts";
import { type ZippedFile, zipOf } from "./zip-writer.ts";

const MEBI = 1_024 * 1_024;

describe("archivedFiles", () => {
  it("gives the files in their order, whole", async () => {
    const zip = zipOf([
      { name: "a.xml", content: "<a/>" },
      { name: "folder/", content: "", isStored: true },
      { name: "folder/b.xml", content: "b".repeat(200_000) },
      { name: "__MACOSX/folder/._b.xml", content: "shadow" },
      { name: "c.xml", content: "stored", isStored: true },
      { name: "d.xml", content: "streamed", hasDescriptor: true },
    ]);
    expect(await unpacked(zip)).toEqual([
      ["a.xml", "<a/>"],
      ["folder/b.xml", "b".repeat(200_000)],
      ["c.xml", "stored"],
      ["d.xml", "streamed"],
    ]);
  });

  it("reads data that holds the signatures of a zip", async () => {
    const content = Buffer.concat([Buffer.from("x"), zipOf([{ name: "y", content: "y", hasDescriptor: true }])]);
    const zip = zipOf([{ name: "a.xml", content, isStored: true, hasDescriptor: true }]);
    expect((await unpacked(zip)).map(([name]) => name)).toEqual(["a.xml"]);
  });

  it.each<[string, readonly ZippedFile[], RegExp]>([
    ["an encrypted file", [{ name: "a.xml", content: "a", isEncrypted: true }], /the encrypted file “a\.xml”/],
    ["a compression that is not deflate", [{ name: "a.xml", content: "a", method: 14 }], /not deflate/],
    ["a document of Excel", [{ name: "[Content_Types].xml", content: "<Types/>" }], /office program: store it as CSV/],
    ["an archive by its name", [{ name: "a.zip", content: "a" }], /the archive “a\.zip” in it/],
    ["an archive by its bytes", [{ name: "a.xml", content: zipOf([]) }], /the archive “a\.xml” in it/],
    [
      "a gzip by its bytes",
      [{ name: "a.xml", content: Buffer.from([0x1f, 0x8b, 8, 0]) }],
      /the archive “a\.xml” in it/,
    ],
    ["a path upwards", [{ name: "../a.xml", content: "a" }], /invalid relative path/],
    ["a path upwards with backslashes", [{ name: "x\\..\\..\\a.xml", content: "a" }], /invalid relative path/],
    ["an absolute path", [{ name: "/etc/a.xml", content: "a" }], /absolute path/],
    ["a drive", [{ name: "C:\\a.xml", content: "a" }], /absolute path/],
    [
      "two files of one name",
      [
        { name: "a", content: "1" },
        { name: "a", content: "2" },
      ],
      /two files of one name/,
    ],
    [
      "overlapping files",
      [
        { name: "a", content: "1" },
        { name: "b", content: "1", sameDataAs: 0 },
      ],
      /overlap/,
    ],
    ["a false size, too small", [{ name: "a", content: "a".repeat(5_000), claimedSize: 10 }], /too many bytes/],
    ["a false size, too large", [{ name: "a", content: "a", claimedSize: 10 }], /not enough bytes/],
    ["a false checksum", [{ name: "a", content: "a", claimedChecksum: 7 }], /the checksum of “a” differs/],
    ["no files", [{ name: "folder/", content: "", isStored: true }], /has no files/],
    ["nothing at all", [], /has no files/],
    ["a zip bomb", [{ name: "a.xml", content: Buffer.alloc(16 * MEBI) }], /250 times its size/],
    ["a bomb, false size", [{ name: "a.xml", content: Buffer.alloc(16 * MEBI), claimedSize: 100 }], /too many bytes/],
    [
      "more than it may unpack to",
      [{ name: "a", content: "a", claimedSize: 3 * 1_024 * MEBI }],
      /unpacks to more than/,
    ],
  ])("refuses, in one sentence, %s", async (_what, files, sentence) => {
    await expectRefusal(unpacked(zipOf(files)), sentence);
  });

  it("refuses too many files", async () => {
    const files = Array.from({ length: FORMAT_LIMITS.archiveEntries + 1 }, (_, index) => ({
      name: `${index}`,
      content: "",
    }));
    await expectRefusal(unpacked(zipOf(files)), /more than 1000 files/);
  });

  it("refuses an archive that is too large before it has read it all", async () => {
    let read = 0;
    const endless = async function* () {
      for (;;) {
        read += MEBI;
        yield Buffer.alloc(MEBI);
      }
    };
    await expectRefusal(unpackedFrom(endless()), /is larger than/);
    expect(read).toBe(FORMAT_LIMITS.archiveBytes + MEBI);
  });

  it("refuses a zip bomb with false sizes after it has read a bounded part", async () => {
    const zip = zipOf([{ name: "a.xml", content: Buffer.alloc(64 * MEBI), claimedSize: 100 }]);
    let read = 0;
    const reading = (async () => {
      for await (const file of archivedFiles(chunks(zip))) for await (const part of file.bytes) read += part.length;
    })();
    await expectRefusal(reading, /too many bytes/);
    expect(read).toBeLessThan(MEBI);
  });

  it("answers any damage with the files or with a refusal", async () => {
    const zip = zipOf([
      { name: "a.xml", content: "<a>some text that is long enough to be deflated, deflated, deflated</a>" },
      { name: "b.xml", content: "b", hasDescriptor: true },
    ]);
    const damage = fc.array(fc.tuple(fc.nat(zip.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(damage, fc.nat(zip.length), async (changes, cut) => {
        const bytes = Buffer.from(zip);
        for (const [at, value] of changes) bytes[at] = value;
        for (const damaged of [bytes, bytes.subarray(0, cut)]) await expectFilesOrRefusal(damaged);
      }),
      { numRuns: 150 },
    );
  });
});

describe("archivedRows", () => {
  it("moves the positions of each file after those of the previous file", async () => {
    const zip = zipOf([
      { name: "a", content: "3" },
      { name: "b", content: "0" },
      { name: "c", content: "2" },
    ]);
    const positions: number[] = [];
    for await (const record of archivedRows(chunks(zip), countedLines, moved))
      if (record.type === "line") positions.push(record.line.position);
    expect(positions).toEqual([1, 2, 3, 4, 5]);
  });

  it("names the file in a refusal", async () => {
    const zip = zipOf([{ name: "a\u202e.xml", content: "x" }]);
    const parse = async function* (): AsyncGenerator<StatementRecord> {
      yield* [];
      throw new StatementRefusedError("not_this_format", "It is no statement.");
    };
    const records = archivedRows(chunks(zip), parse, moved);
    await expectRefusal(records.next(), /^“a\\u202e\.xml” in the archive: It is no statement\.$/, "not_this_format");
  });
});

describe("isArchive", () => {
  it("recognizes an archive by its first bytes", () => {
    expect(
      [zipOf([]), zipOf([{ name: "a", content: "" }]), Buffer.from("PK"), Buffer.from("<?xml")].map(isArchive),
    ).toEqual([true, true, false, false]);
  });
});

async function* countedLines(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<StatementRecord> {
  const count = Number(await textOf(bytes));
  for (let position = 1; position <= count; position += 1)
    yield lineRecord({
      position,
      kind: "payment",
      providerType: "",
      amountMinor: 1n,
      currency: "EUR",
      bookedOn: "2026-01-01",
    });
}

async function expectRefusal(work: Promise<unknown>, sentence: RegExp, code = "archive_refused"): Promise<void> {
  const error: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(StatementRefusedError);
  expect(error).toMatchObject({ code, message: expect.stringMatching(sentence) });
  expect((error as Error).message).toMatch(/^\S.*\.$/);
}

async function expectFilesOrRefusal(zip: Buffer): Promise<void> {
  try {
    await unpacked(zip);
  } catch (error) {
    expect(error).toBeInstanceOf(StatementRefusedError);
  }
}

async function unpacked(zip: Buffer): Promise<(readonly [string, string])[]> {
  return unpackedFrom(chunks(zip));
}

async function unpackedFrom(archive: AsyncIterable<Uint8Array>): Promise<(readonly [string, string])[]> {
  const files: (readonly [string, string])[] = [];
  for await (const file of archivedFiles(archive)) files.push([file.name, await textOf(file.bytes)]);
  return files;
}

async function textOf(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of bytes) parts.push(part);
  return Buffer.concat(parts).toString();
}

async function* chunks(bytes: Buffer): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += 100_000) yield bytes.subarray(start, start + 100_000);
}
