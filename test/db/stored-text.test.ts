/** Text that PostgreSQL cannot hold is stored and read back verbatim. */
import * as fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import type { Database } from "../../services/db/pool.ts";
import { readStoredJson, readStoredText, storedJson, storedText } from "../../services/db/stored-text.ts";
import { openClone } from "../support/open-clone.ts";

const UNSAFE = ["\0", "\uD83C", "\uDF75", "🍵", "\uFDD0", "\uFDD00000", "\uFDD0", "\u202E\n\\u0000", "a\uD800\0\uDC00"];
const anyText = fc.string({
  unit: fc.oneof(
    fc.constantFrom(...UNSAFE),
    fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)),
  ),
});

let database: Database;
beforeAll(async () => {
  const clone = await openClone({ maxConnections: 1 });
  database = clone.sql;
  return clone.stop;
});

describe("stored text", () => {
  it("any text: read back unchanged; text that PostgreSQL can hold is stored unchanged", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const stored = storedText(text);
        expect(readStoredText(stored)).toBe(text);
        expect([stored.includes("\0"), stored.isWellFormed()]).toEqual([false, true]);
        if (!/[\0\uFDD0\p{Cs}]/u.test(text)) expect(stored).toBe(text);
      }),
      { numRuns: 2_000 },
    );
  });

  it("in a text column and in jsonb: each text is read back verbatim", async () => {
    const texts = [...UNSAFE, ...fc.sample(anyText, 200)];
    const stored = texts.map(storedText);
    const rows = await database<{ text: string; data: { deep: string[] } }[]>`
      select t.text, ${storedJson({ deep: texts })}::text::jsonb as data
      from unnest(${stored}::text[]) with ordinality as t (text, place) order by t.place`;
    expect(rows.map(({ text }) => readStoredText(text))).toEqual(texts);
    expect(readStoredJson(rows[0]?.data)).toEqual({ deep: texts });
  });
});
