/** What `recon report` prints of a day. */
import { afterEach, expect, test, vi } from "vitest";
import type { Person } from "../../clients/person.ts";
import { reportDay } from "../../clients/reconciliation/periods.ts";

afterEach(() => vi.restoreAllMocks());

async function printed(report: object): Promise<string> {
  const write = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const read: Person["read"] = (_, schema) =>
    Promise.resolve(schema.parse({ day: "2026-11-01", time_zone: "Europe/Berlin", ...report }));
  await reportDay({ filial: "1", day: "2026-11-01" })({ read } as Person);
  return write.mock.calls.map(([text]) => String(text)).join("");
}

test("open differences: printed by kind, also those without an amount", async () => {
  const sum = { count: 1, amount: "2.00" };
  const totals = {
    currency: "EUR",
    settled: { total: sum },
    statement: { total: sum },
    tips: sum,
    open_differences: { kinds: [{ kind: "tip", ...sum }], total: sum },
  };
  const text = await printed({ totals: [totals], open_without_amount: [{ kind: "malformed_line", count: 2 }] });
  expect(text.split("\n").slice(-4)).toEqual([
    "EUR\topen tip\t1\t2.00",
    "EUR\topen differences\t1\t2.00",
    "-\topen malformed_line\t2\t-",
    "",
  ]);
});
