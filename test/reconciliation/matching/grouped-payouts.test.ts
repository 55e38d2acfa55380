/** Payouts that arrive at a bank together, or in parts, without a reference: candidates by their exact sums. */
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { confirmMatch, listCandidates, rejectMatch } from "../../../services/reconciliation/matches.ts";
import { operator } from "../closings/closing-world.ts";
import { type Line, type RunDatabase, type RunWorld, startRunDatabase } from "./run-world.ts";

let running: RunDatabase;
beforeAll(async () => {
  running = await startRunDatabase();
});
afterAll(() => running.stop());

const payout = (name: string, amountMinor: number, day = "2026-03-10"): Line => ({
  name,
  kind: "payout",
  amountMinor: -amountMinor,
  providerReference: name,
  day,
});
const credit = (name: string, amountMinor: number, day = "2026-03-11"): Line => ({
  name,
  kind: "bank_credit",
  amountMinor,
  providerReference: name,
  day,
});

interface Scene {
  readonly world: RunWorld;
  readonly bankId: number;
}

async function openScene(payouts: readonly Line[], credits: readonly Line[]): Promise<Scene> {
  const world = await running.openWorld();
  const bankId = await world.addAccount("bank");
  if (payouts.length > 0) await world.importLines(world.terminalAccountId, payouts);
  if (credits.length > 0) await world.importLines(bankId, credits);
  return { world, bankId };
}

const candidatesOf = async ({ world, bankId }: Scene) =>
  (
    await listCandidates(
      { database: world.database },
      { caller: operator(world), accountId: bankId, sinceId: 0, limit: 100 },
    )
  ).lines;

/** For each line: its kind, and how many payouts are candidates, with the points and sums. */
const shown = async (scene: Scene) =>
  (await candidatesOf(scene))
    .map(({ line, kind, candidates }) => ({
      line: line.providerReference,
      kind,
      candidates: candidates.map(({ score, explanation }) => ({ score, ...explanation })),
    }))
    .toSorted((one, other) => one.line.localeCompare(other.line));

describe("one credit that is the sum of several payouts", () => {
  test("is a candidate for all of them, with its points and the difference", async () => {
    const scene = await openScene(
      [payout("P1", 3000, "2026-03-07"), payout("P2", 4100, "2026-03-08"), payout("P3", 900, "2026-03-09")],
      [credit("C", 8000, "2026-03-09")],
    );
    expect((await scene.world.run(scene.bankId)).lines).toEqual({ C: "reference_mismatch" });
    const part = { score: 52, amount: 40, date: 12, time: 0, terminal: 0, reference: 0, daysApart: 2 };
    const group = { ...part, payments: 3, sumMinor: "8000", differenceMinor: "0" };
    expect(await shown(scene)).toEqual([{ line: "C", kind: "reference_mismatch", candidates: [group, group, group] }]);
  });

  test("is a match when a person confirms it, and is no candidate after a person has rejected one payout", async () => {
    const parts = [payout("P1", 3000), payout("P2", 4100)];
    const confirmed = await openScene(parts, [credit("C", 7100)]);
    const { database } = confirmed.world;
    await confirmed.world.run(confirmed.bankId);
    const [found] = await candidatesOf(confirmed);
    const asked = {
      caller: operator(confirmed.world),
      lineIds: [found?.line.lineId ?? 0],
      paymentKeys: found?.candidates.map(({ payment }) => payment.paymentKey) ?? [],
      reason: "Two days at once.",
    };
    await confirmMatch({ database }, asked);
    expect((await confirmed.world.run(confirmed.bankId)).lines).toEqual({ C: "matched" });

    const rejected = await openScene(parts, [credit("C", 7100)]);
    await rejected.world.run(rejected.bankId);
    const [line] = await candidatesOf(rejected);
    const [first] = line?.candidates ?? [];
    await rejectMatch(
      { database },
      {
        caller: operator(rejected.world),
        lineId: line?.line.lineId ?? 0,
        paymentKey: first?.payment.paymentKey ?? "",
        reason: "Arrived elsewhere.",
      },
    );
    for (const _ of [1, 2]) expect((await rejected.world.run(rejected.bankId)).lines).toEqual({ C: "unmatched_money" });
  });

  test("is closed by a person: none of its payouts is missing, also in a run without the day of the credit", async () => {
    const { world, bankId } = await openScene([payout("P1", 3000), payout("P2", 4100)], [credit("C", 7100)]);
    await world.run(bankId);
    await world.database`
      update issues set status = 'closed', resolved_at = now(), resolved_by = 7, reason = 'Seen.' where organization_id = ${world.organizationId}`;

    expect(await world.run(bankId)).toMatchObject({
      lines: { C: "reference_mismatch" },
      kinds: ["reference_mismatch"],
    });
    expect((await world.run(bankId, { to: "2026-03-10" })).kinds).toEqual([]);
  });

  test.each([
    ["one minor unit more", [payout("P1", 3000), payout("P2", 4100)], credit("C", 7101)],
    ["payouts of two accounts", [payout("P1", 3000)], credit("C", 7100)],
    ["a payout of another week", [payout("P1", 3000), payout("P2", 4100, "2026-03-01")], credit("C", 7100)],
    [
      "more possible parts than the limit",
      Array.from({ length: 9 }, (_, index) => payout(`P${index}`, 100 * (index + 1))),
      credit("C", 4500),
    ],
  ] as const)("is no candidate: %s", async (name, payouts, line) => {
    const scene = await openScene(payouts, [line]);
    if (name === "payouts of two accounts")
      await scene.world.importLines(await scene.world.addAccount("other"), [payout("P2", 4100)]);
    expect((await scene.world.run(scene.bankId)).lines).toEqual({ C: "unmatched_money" });
  });

  test("is the sum of two groups: the line is ambiguous", async () => {
    const scene = await openScene(
      [payout("P1", 3000), payout("P2", 4000), payout("P3", 1000), payout("P4", 6000)],
      [credit("C", 7000)],
    );
    expect((await scene.world.run(scene.bankId)).lines).toEqual({ C: "ambiguous_match" });
  });
});

describe("several credits that are the sum of one payout", () => {
  test("each credit is a candidate for the payout, and they match when a person confirms them together", async () => {
    const scene = await openScene([payout("P", 9000)], [credit("C1", 5000), credit("C2", 4000), credit("C3", 77)]);
    expect((await scene.world.run(scene.bankId)).lines).toEqual({
      C1: "reference_mismatch",
      C2: "reference_mismatch",
      C3: "unmatched_money",
    });
    const found = await candidatesOf(scene);
    expect(found[0]?.candidates[0]?.explanation).toMatchObject({ lines: 2, sumMinor: "9000", differenceMinor: "0" });
    const { database } = scene.world;
    await confirmMatch(
      { database },
      {
        caller: operator(scene.world),
        lineIds: found.map(({ line }) => line.lineId),
        paymentKeys: [found[0]?.candidates[0]?.payment.paymentKey ?? ""],
        reason: "It came in two parts.",
      },
    );
    const { lines } = await scene.world.run(scene.bankId);
    expect(lines).toEqual({ C1: "matched", C2: "matched", C3: "unmatched_money" });
  });
});

test("property: any order and division of the files gives the same groups and the same result", async () => {
  const amounts = fc.array(fc.integer({ min: 100, max: 900 }), { minLength: 2, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ amounts, inParts: fc.boolean() }), { minLength: 1, maxLength: 3 }),
      fc.infiniteStream(fc.nat({ max: 1_000 })),
      async (groups, stream) => {
        const payouts: Line[] = [];
        const credits: Line[] = [];
        for (const [index, { amounts: parts, inParts }] of groups.entries()) {
          const whole = parts.reduce((sum, part) => sum + part, 0);
          const [one, several] = inParts ? ([payout, credit] as const) : ([credit, payout] as const);
          (inParts ? payouts : credits).push(one(`W${index}`, whole));
          for (const [place, part] of parts.entries())
            (inParts ? credits : payouts).push(several(`G${index}-${place}`, part));
        }
        const numbers = stream[Symbol.iterator]();
        const shuffled = (lines: readonly Line[]): Line[] =>
          lines
            .map((line) => ({ line, at: numbers.next().value ?? 0 }))
            .toSorted((a, b) => a.at - b.at)
            .map(({ line }) => line);
        const inFiles = async (scene: Scene): Promise<void> => {
          const files = [
            ...shuffled(payouts).map((line) => [scene.world.terminalAccountId, line] as const),
            ...shuffled(credits).map((line) => [scene.bankId, line] as const),
          ].map((file) => ({ file, at: numbers.next().value ?? 0 }));
          for (const { file } of files.toSorted((a, b) => a.at - b.at))
            await scene.world.importLines(file[0], [file[1]]);
        };
        const first = await openScene(payouts, credits);
        const second = await openScene([], []);
        await inFiles(second);
        const [one, other] = [await first.world.run(first.bankId), await second.world.run(second.bankId)];
        expect(other.lines).toEqual(one.lines);
        expect(other.kinds).toEqual(one.kinds);
        expect(await shown(second)).toEqual(await shown(first));
      },
    ),
    { numRuns: 6, seed: 13 },
  );
});
