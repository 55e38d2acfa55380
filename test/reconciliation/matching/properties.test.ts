/**
 * Runs over random payments and statements with seeded faults: each fault gives its kind and no other;
 * in any order of the files, with runs and decisions in between, and with files that are withdrawn and imported again.
 */
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Line, type RunDatabase, type RunWorld, startRunDatabase } from "./run-world.ts";

let running: RunDatabase;
beforeAll(async () => {
  running = await startRunDatabase();
});
afterAll(() => running.stop());

interface Sale {
  readonly name: string;
  readonly amountMinor: number;
}

/** What is wrong with the line of one sale, and the kind that the run must give it. */
const FAULTS: Readonly<Record<string, { readonly kind: string | undefined; readonly lines: (sale: Sale) => Line[] }>> =
  {
    none: { kind: undefined, lines: (sale) => [lineOf(sale)] },
    "none, with a fee": {
      kind: undefined,
      lines: (sale) => [lineOf(sale, { feeMinor: -10, netMinor: sale.amountMinor - 10 })],
    },
    dropped: { kind: "missing_in_statement", lines: () => [] },
    doubled: {
      kind: "duplicate_in_statement",
      lines: (sale) => [lineOf(sale), lineOf(sale, { name: `${sale.name}-2` })],
    },
    over: { kind: "amount_over", lines: (sale) => [lineOf(sale, { amountMinor: sale.amountMinor + 1 })] },
    under: { kind: "amount_under", lines: (sale) => [lineOf(sale, { amountMinor: sale.amountMinor - 1 })] },
    currency: { kind: "currency_mismatch", lines: (sale) => [lineOf(sale, { currency: "CHF" })] },
    sign: { kind: "direction_mismatch", lines: (sale) => [lineOf(sale, { amountMinor: -sale.amountMinor })] },
    tip: { kind: "tip", lines: (sale) => [lineOf(sale, { amountMinor: sale.amountMinor + 150, tipMinor: 150 })] },
    fee: { kind: "fee_mismatch", lines: (sale) => [lineOf(sale, { feeMinor: -10, netMinor: sale.amountMinor - 11 })] },
    late: { kind: "date_out_of_window", lines: (sale) => [lineOf(sale, { day: "2026-03-30" })] },
    failed: { kind: "status_mismatch", lines: (sale) => [lineOf(sale, { kind: "not_money" })] },
    retyped: { kind: "reference_mismatch", lines: (sale) => [lineOf(sale, { providerReference: `x-${sale.name}` })] },
    refunded: {
      kind: "refund_not_registered",
      lines: (sale) => [lineOf(sale), lineOf(sale, { ...back(sale), name: `${sale.name}-r`, kind: "refund" })],
    },
    "charged back": {
      kind: "chargeback_not_registered",
      lines: (sale) => [lineOf(sale), lineOf(sale, { ...back(sale), name: `${sale.name}-c`, kind: "chargeback" })],
    },
    "beside a stray": {
      kind: "unmatched_money",
      lines: (sale) => [lineOf(sale), { ...lineOf(sale), ...stray(sale) }],
    },
  };
const NAMES = Object.keys(FAULTS);
/** Each property is tested with all faults together, then with a few random cases. `npm run soak` sets PROPERTY_RUNS. */
const LONG_RUNS = Number(process.env["PROPERTY_RUNS"] ?? 0);
const runsOf = (shortForm: number): number => Math.max(LONG_RUNS, shortForm);

function lineOf({ name, amountMinor }: Sale, more: Partial<Line> = {}): Line {
  return { name, amountMinor, providerReference: name, ...more };
}
const back = ({ name, amountMinor }: Sale): Partial<Line> => ({
  amountMinor: -amountMinor,
  paymentReference: name,
  providerReference: `back-${name}`,
});
const stray = ({ name, amountMinor }: Sale): Line => ({
  name: `${name}-s`,
  amountMinor: amountMinor + 31,
  providerReference: `stray-${name}`,
});

const faultsArbitrary = fc.array(fc.constantFrom(...NAMES), { minLength: 1, maxLength: 16 });
interface Case {
  readonly sales: readonly Sale[];
  readonly files: readonly (readonly Line[])[];
  readonly kinds: readonly string[];
}

/** Amounts differ so much that no line can match the payment of another line. */
function caseOf(faults: readonly string[], filesOfLines: readonly number[]): Case {
  const sales = faults.map((_, index) => ({ name: `sale-${index}`, amountMinor: 2_000 + 1_000 * index }));
  const lines = sales.flatMap((sale, index) => FAULTS[faults[index] ?? ""]?.lines(sale) ?? []);
  // A line is in one or two of three files.
  const files = [0, 1, 2].map((file) =>
    lines.filter((_, index) => {
      const place = filesOfLines[index % filesOfLines.length] ?? 0;
      return place % 3 === file || (place > 2 && (place + 1) % 3 === file);
    }),
  );
  const kinds = faults.flatMap((fault) => FAULTS[fault]?.kind ?? []);
  return { sales, files, kinds: kinds.toSorted() };
}

/** The issues of a world without ids and times, so that two worlds can be compared. */
async function issuesOf({ database, organizationId }: RunWorld): Promise<string[]> {
  const rows = await database<{ issue: string }[]>`
    select concat_ws(' ', kind, regexp_replace(subject_key, '^transaction:.*', 'transaction'), encode(evidence_hash, 'hex'),
      status, generation) as issue
    from issues where organization_id = ${organizationId} and status <> 'ended' order by 1`;
  return rows.map(({ issue }) => issue);
}

async function settled({ database, organizationId }: RunWorld): Promise<number> {
  const [row] = await database<{ count: number }[]>`
    select count(*) as count from transactions where organization_id = ${organizationId}`;
  return row?.count ?? -1;
}

async function sumsFit({ database, qrAccountId }: RunWorld, runId: number): Promise<boolean> {
  const [row] = await database<{ fits: boolean }[]>`
    with stated as (select t.* from reconciliation_runs r, jsonb_to_recordset(r.totals) as t (currency text, lines bigint,
        "totalMinor" bigint, "matchedMinor" bigint, "differingMinor" bigint, "rejectedMinor" bigint) where r.run_id = ${runId}),
    stored as (select currency, count(*) as lines, sum(amount_minor) as minor from statement_lines
      where account_id = ${qrAccountId} group by currency)
    select coalesce(bool_and(s.lines = t.lines and s.minor = t."totalMinor"
      and t."totalMinor" = t."matchedMinor" + t."differingMinor" + t."rejectedMinor"), true) as fits
    from stored s full join stated t using (currency)`;
  return row?.fits === true;
}

async function closeSome({ database, organizationId }: RunWorld): Promise<void> {
  await database`
    update issues set status = 'closed', resolved_at = now(), resolved_by = 7, reason = 'Dealt with.'
    where organization_id = ${organizationId} and status = 'open' and kind <> 'missing_in_statement'`;
}

describe("random statements with faults", () => {
  test("each fault gives only its kind; each line has an outcome, the sums match, and nothing is settled", async () => {
    await fc.assert(
      fc.asyncProperty(faultsArbitrary, async (faults) => {
        const world = await running.openWorld();
        const { sales, files, kinds } = caseOf(faults, [0]);
        for (const { name, amountMinor } of sales) await world.pay({ reference: name, amountMinor });
        await world.importLines(world.qrAccountId, files.flat());

        const outcome = await world.run(world.qrAccountId);

        expect(outcome.kinds).toEqual(kinds);
        expect(
          Object.values(outcome.lines).filter((word) => word === "open" || word.startsWith("matched and")),
        ).toEqual([]);
        expect(await sumsFit(world, outcome.runId)).toBe(true);
        expect(await settled(world)).toBe(sales.length);
      }),
      { numRuns: runsOf(5), seed: 1, examples: [[NAMES]] },
    );
  });

  test("overlapping files in any order, with runs in between, give the same lines, issues and hashes", async () => {
    const orders = fc.shuffledSubarray([0, 1, 2], { minLength: 3 });
    const places = fc.array(fc.nat(5), { minLength: 1, maxLength: 7 });
    await fc.assert(
      fc.asyncProperty(
        faultsArbitrary,
        places,
        orders,
        fc.boolean(),
        async (faults, filesOfLines, order, runsBetween) => {
          const { sales, files } = caseOf(faults, filesOfLines);
          const results = [];
          for (const sequence of [[0, 1, 2], order]) {
            const world = await running.openWorld();
            for (const { name, amountMinor } of sales) await world.pay({ reference: name, amountMinor });
            for (const file of sequence) {
              await world.importLines(world.qrAccountId, files[file] ?? []);
              if (runsBetween) await world.run(world.qrAccountId);
            }
            const { lines, kinds } = await world.run(world.qrAccountId);
            results.push({ lines, kinds, issues: await issuesOf(world) });
          }
          expect(results[1]).toEqual(results[0]);
        },
      ),
      { numRuns: runsOf(3), seed: 2, examples: [[NAMES, [0, 4, 2, 5, 1, 3], [2, 0, 1], true]] },
    );
  });

  test("a closed issue stays closed, in any order of files and after all were withdrawn and imported again", async () => {
    const orders = fc.shuffledSubarray([0, 1, 2], { minLength: 3 });
    const places = fc.array(fc.nat(5), { minLength: 1, maxLength: 7 });
    await fc.assert(
      fc.asyncProperty(faultsArbitrary, places, orders, async (faults, filesOfLines, order) => {
        const world = await running.openWorld();
        const { sales, files } = caseOf(faults, filesOfLines);
        for (const { name, amountMinor } of sales) await world.pay({ reference: name, amountMinor });
        for (const file of files) await world.importLines(world.qrAccountId, file);
        const { resultHash } = await world.run(world.qrAccountId);
        await closeSome(world);
        const before = await issuesOf(world);
        await world.withdraw(world.qrAccountId);
        await world.run(world.qrAccountId);

        for (const file of order) {
          await world.importLines(world.qrAccountId, files[file] ?? []);
          await world.run(world.qrAccountId);
        }

        expect((await world.run(world.qrAccountId)).resultHash).toBe(resultHash);
        expect(await issuesOf(world)).toEqual(before);
      }),
      { numRuns: runsOf(2), seed: 3, examples: [[NAMES, [0, 4, 2, 5, 1, 3], [2, 0, 1]]] },
    );
  });

  test("runs of several accounts at once give each payment and each line to one match", async () => {
    const world = await running.openWorld();
    const accounts = [world.terminalAccountId, await world.addAccount("second"), await world.addAccount("third")];
    const references = Array.from({ length: 12 }, (_, index) => `terminal-${index}`);
    for (const [index, reference] of references.entries()) {
      await world.pay({ route: "attested_terminal", reference, amountMinor: 1_000 + index });
    }
    for (const account of accounts) {
      await world.importLines(
        account,
        references.map((reference, index) => lineOf({ name: reference, amountMinor: 1_000 + index })),
      );
    }
    const outcomes = await Promise.all(accounts.map((account) => world.run(account)));
    const words = outcomes.flatMap(({ lines }) => Object.values(lines));
    expect(words.filter((word) => word === "matched")).toHaveLength(references.length);
    expect(words.filter((word) => word === "duplicate_in_statement")).toHaveLength(references.length * 2);
  });
});
