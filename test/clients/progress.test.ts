/** The progress bar of an upload and of an import, on a terminal and in the log of a program. */
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Person } from "../../clients/person.ts";
import { createProgress } from "../../clients/reconciliation/progress.ts";
import { untilEnded, upload } from "../../clients/reconciliation/upload.ts";
import { freePort } from "../support/free-port.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";

function fakeStream(isTTY: boolean) {
  let written = "";
  const write = (text: string): boolean => {
    written += text;
    return true;
  };
  return { stream: { isTTY, write } as NodeJS.WriteStream, written: () => written };
}

function shown(isTTY: boolean, parts: readonly number[], total = 1_000): string {
  const { stream, written } = fakeStream(isTTY);
  const progress = createProgress("upload", stream);
  for (const done of parts) progress.update(done, total);
  progress.end();
  return written();
}
const EACH = Array.from({ length: 1_001 }, (_, done) => done);

describe("a progress bar on a terminal", () => {
  test("one line, written again for each hundredth, and ended once", () => {
    const states = shown(true, EACH).split("\r");
    expect(states.shift()).toBe("");
    expect(states).toHaveLength(101);
    expect(states.at(-1)).toBe(`upload [${"#".repeat(30)}] 100 %\n`);
    expect(states.slice(0, -1).join("")).not.toContain("\n");
    expect(new Set(states.map((state) => state.trimEnd().length)), "nothing of a longer state stays").toEqual(
      new Set([45]),
    );
  });

  test("smaller values: ignored; at its end: stays at 100 %", () => {
    const text = shown(true, [500, 300, 500, 1_200, 1_000]);
    expect([...text.matchAll(/(\d+) %/g)].map(([, percent]) => percent)).toEqual(["50", "100"]);
  });
});

describe("a progress bar in a log", () => {
  test("one line for each tenth, without control characters", () => {
    const text = shown(false, EACH);
    const lines = text.split("\n");
    expect(lines.pop()).toBe("");
    expect(lines.map((line) => /\d+ %$/.exec(line)?.[0])).toEqual(EACH.slice(0, 11).map((tenth) => `${tenth * 10} %`));
    expect(text.replaceAll("\n", "")).toMatch(/^[\x20-\x7e]*$/);
  });

  test("an empty file: 100 %", () => expect(shown(false, [0], 0)).toContain("100 %"));
});

describe("the error sentence after a progress bar", () => {
  let folder: TemporaryFolder;
  let person: Person;
  const server = createServer((request) => {
    request.once("data", () => request.destroy());
  });
  beforeAll(async () => {
    folder = temporaryFolder("progress");
    const port = await freePort();
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    const read = (): Promise<never> => Promise.reject(new Error("The service is away."));
    const { signal } = new AbortController();
    person = { baseUrl: `http://127.0.0.1:${port}`, credential: "key", signal, read } as unknown as Person;
  });
  afterAll(() => {
    server.close();
    folder.remove();
  });

  test("an upload that fails: the sentence is on another line than the bar", async () => {
    const path = join(folder.path, "statement.csv");
    writeFileSync(path, Buffer.alloc(1_024 * 1_024, "x"));
    const { stream, written } = fakeStream(true);
    const declared = { format: undefined, encoding: undefined, mappingId: undefined };
    const file = { path, name: "statement.csv", accountId: 1, declared };
    await expect(upload(person, file, createProgress("upload", stream))).rejects.toThrow("broke off");
    expect(written()).toMatch(/%\n$/);
  });

  test("an import that the command cannot follow: the sentence is on another line than the bar", async () => {
    const { stream, written } = fakeStream(true);
    const progress = createProgress("import", stream);
    progress.update(1, 2);
    await expect(untilEnded(person, 1, progress)).rejects.toThrow("away");
    expect(written()).toMatch(/50 %\n$/);
  });
});
