/** The table of credentials behaves as a map, for any insertions and removals. */
import { hash } from "node:crypto";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CredentialTable } from "../../gateway/read-model/credential-replica.ts";

/** Few digests, half of them with the same beginning, so that slots collide. */
function digestOf(id: number): string {
  const digest = hash("sha256", String(id), "binary");
  return id % 2 === 0 ? `same${digest.slice(4)}` : digest;
}

describe("CredentialTable", () => {
  it("set, delete and find in any order: the same results as a map, also while the table grows", () => {
    const action = fc.record({ id: fc.nat(400), kind: fc.constantFrom("set", "set", "delete", "spend") });
    fc.assert(
      fc.property(fc.array(action, { maxLength: 3_000, size: "max" }), (actions) => {
        const table = new CredentialTable();
        const map = new Map<number, { device: number; station: number; fullAtMs: number }>();
        for (const [index, { id, kind }] of actions.entries()) {
          const known = map.get(id);
          if (kind === "set") {
            table.set(digestOf(id), index + 1, id + 2 ** 40, id % 32);
            // A new entry of a known credential leaves its throttle as it is.
            map.set(id, { device: index + 1, station: id + 2 ** 40, fullAtMs: known?.fullAtMs ?? 0 });
          } else if (kind === "delete") {
            table.delete(digestOf(id));
            map.delete(id);
          } else if (known !== undefined) {
            table.setFullAtMs(table.find(digestOf(id)), index);
            map.set(id, { ...known, fullAtMs: index });
          }
        }
        expect(table.size).toBe(map.size);
        for (let id = 0; id <= 400; id += 1) {
          const slot = table.find(digestOf(id));
          const known = map.get(id);
          expect(slot >= 0).toBe(known !== undefined);
          if (known === undefined) continue;
          const { device, station, fullAtMs } = known;
          expect([table.deviceId(slot), table.stationId(slot), table.fullAtMs(slot), table.scopeMask(slot)]).toEqual([
            device,
            station,
            fullAtMs,
            id % 32,
          ]);
        }
      }),
      { numRuns: 30 },
    );
  });

  it("200,000 entries: finds each of them and nothing else, and does not grow when entries are replaced", () => {
    const table = new CredentialTable();
    for (let id = 0; id < 200_000; id += 1) table.set(hash("sha256", `a${id}`, "binary"), id, id, 1);
    for (let id = 0; id < 200_000; id += 7)
      expect(table.deviceId(table.find(hash("sha256", `a${id}`, "binary")))).toBe(id);
    for (let id = 0; id < 1_000; id += 1) expect(table.find(hash("sha256", `b${id}`, "binary"))).toBe(-1);
    const bytes = table.byteLength;
    for (let id = 0; id < 200_000; id += 1) {
      table.delete(hash("sha256", `a${id}`, "binary"));
      table.set(hash("sha256", `c${id}`, "binary"), id, id, 1);
    }
    expect(table.size).toBe(200_000);
    expect(table.byteLength).toBe(bytes);
    table.clear();
    expect([table.size, table.find(hash("sha256", "c1", "binary"))]).toEqual([0, -1]);
  });
});
