/** Reading a page in pieces gives the same page as reading the whole list at once. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../services/bus/bounds.ts";
import { firstPage, readPage } from "../../services/bus/page.ts";

interface Thing {
  readonly id: number;
  readonly text: string;
}

/** Things with texts of these lengths, with ids from 1. */
const thingsOf = (lengths: readonly number[]): readonly Thing[] =>
  lengths.map((length, index) => ({ id: index + 1, text: "x".repeat(length) }));

/** Reads a page of these things. Returns the page and the number of things that were read. */
async function pageOf(things: readonly Thing[], limit: number) {
  let read = 0;
  const found = await readPage<Thing>(limit, async (last, count) => {
    const after = last?.id ?? 0;
    const next = things.slice(after, after + count);
    read += next.length;
    return next;
  });
  return { ...found, read };
}

describe("a page that is read in pieces", () => {
  it("any lengths and any limit: it equals the page of a list that is read at once", async () => {
    const lengths = fc.array(fc.oneof(fc.nat(100), fc.nat(20_000), fc.nat(BOUNDS.listedBytes * 2)), { maxLength: 120 });
    await fc.assert(
      fc.asyncProperty(lengths, fc.integer({ min: 1, max: 130 }), async (found, limit) => {
        const things = thingsOf(found);
        const { page, hasMore } = await pageOf(things, limit);
        expect({ page, hasMore }).toEqual(firstPage(things.slice(0, limit + 1), limit));
      }),
      { numRuns: 60 },
    );
  });

  it("of the longest things, a few are read; of short things, one more than the limit", async () => {
    const long = await pageOf(thingsOf(Array.from({ length: 600 }, () => 120_000)), BOUNDS.listed);
    expect(long).toMatchObject({ hasMore: true, read: 20 });
    expect(long.page).toHaveLength(1);
    const short = await pageOf(thingsOf(Array.from({ length: 600 }, () => 10)), BOUNDS.listed);
    expect(short).toMatchObject({ hasMore: true, read: BOUNDS.listed + 1 });
  });

  it("of 20 short things and then long ones, 100 are read", async () => {
    const lengths = Array.from({ length: 600 }, (_, index) => (index < 20 ? 0 : 120_000));
    const { page, read } = await pageOf(thingsOf(lengths), BOUNDS.listed);
    expect(page).toHaveLength(21);
    expect(read).toBe(100);
  });
});
