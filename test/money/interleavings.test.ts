/**
 * Money is conserved while cashiers, a companion, guests, an operator, kill switches and killed processes act at the same
 * time and in random order, over all four routes. A run that fails is printed with its seed and path:
 *
 *   MONEY_SEED=… MONEY_PATH=… vitest run test/money/interleavings.test.ts
 *
 * `MONEY_RUNS=100` is a long form, and `npm run soak` does 40. A replay has the same schedule, but other overlaps in time.
 */
import { inspect } from "node:util";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findBrokenRules, type Played, repeatAll, untilQuiet } from "./broken-rules.ts";
import { freeze, reportConfirmations, strike } from "./fault-injection.ts";
import { type MoneyWorld, startMoneyWorld } from "./money-world.ts";
import { Playing } from "./people.ts";
import { FREEZES, type Schedule, STORY, schedule } from "./schedule.ts";
import { Scheme } from "./scheme.ts";

const FIXED_SEED = 20_261_121;
/** The first run of the fixed seed is `STORY`. A run takes about seven seconds, most of them for dead hosts. */
const RUNS = Number(process.env["MONEY_RUNS"] ?? 1);
/** The short form plays only `STORY`. New seeds run in the soak, because their failures seldom come from the current change. */
const SEEDS = RUNS === 1 ? [FIXED_SEED] : [FIXED_SEED, Date.now() % 2 ** 31];
/** The number of further schedules that are tried after a failure, to find a smaller one. */
const SHRINKING_RUNS = 3;
const RUN_MS = 180_000;

let world: MoneyWorld;
beforeAll(async () => {
  world = await startMoneyWorld();
  await reportConfirmations(world);
});
afterAll(() => world.stop());

/** What happened in all runs. The property would also hold if nothing happened. */
const seen = { strikes: 0, hits: 0, runs: 0, frozen: new Set<string>() };

async function broken(plan: Schedule): Promise<string[]> {
  seen.runs += 1;
  const scheme = new Scheme(world);
  const [last, ...others] = plan.filials.toReversed();
  if (last === undefined) throw new Error("There is no filial.");
  const before = await Promise.all(others.toReversed().map((filial) => world.openFilial(filial)));
  const filials = [...before, await world.openFilial(plan.twins ? { ...last, twinOf: before.at(-1) } : last)];
  const playings = plan.filials.flatMap((filialPlan, nth) => {
    const filial = filials[nth];
    return filial === undefined ? [] : [{ filial, playing: new Playing({ world, scheme, filial, plan: filialPlan }) }];
  });
  const strikes = async (): Promise<void> => {
    for (const each of plan.strikes) {
      seen.strikes += 1;
      if (await strike(world, each)) seen.hits += 1;
    }
  };
  await Promise.all([
    ...playings.map(({ playing }) => playing.play()),
    strikes(),
    ...plan.freezes.map(async (each) => {
      await freeze(world, filials, each);
      seen.frozen.add(each.what);
    }),
  ]);
  const played: Played[] = playings.map(({ filial, playing }) => ({ filial, diary: playing.diary }));
  await untilQuiet(world, played);
  const sentences = await findBrokenRules(world, scheme, played);
  if (sentences.length > 0) return sentences;
  // Each command is repeated: it gets its first answer, and no money moves.
  const changed = await repeatAll(world, played);
  await scheme.replayAll();
  await untilQuiet(world, played);
  return [...changed, ...(await findBrokenRules(world, scheme, played))];
}

function property(): fc.IAsyncProperty<[Schedule]> {
  let failures = 0;
  let attempts = 0;
  return fc.asyncProperty(schedule, async (plan) => {
    if (failures > 0 && (attempts += 1) > SHRINKING_RUNS) return;
    const startedAtMs = Date.now();
    const sentences = await broken(plan).catch((error: unknown) => [inspect(error, { depth: 6 })]);
    if (process.env["MONEY_LOUD"] === "1")
      process.stderr.write(`a run of ${Date.now() - startedAtMs} ms: ${JSON.stringify(sentences)}\n`);
    if (sentences.length > 0) failures += 1;
    expect(sentences).toEqual([]);
  });
}

const givenSeed = process.env["MONEY_SEED"];
const path = process.env["MONEY_PATH"];

describe("interleavings", () => {
  test.each(givenSeed === undefined ? SEEDS : [Number(givenSeed)])(
    "of seed %i: money is conserved",
    async (seed) => {
      const drawn =
        seed === FIXED_SEED
          ? { numRuns: RUNS, examples: [[STORY]] as [Schedule][] }
          : { numRuns: Math.max(1, RUNS - 1) };
      await fc.assert(property(), { seed, ...drawn, ...(path === undefined ? {} : { path }) });
    },
    RUNS * RUN_MS + SHRINKING_RUNS * RUN_MS,
  );

  test("all runs: every route and kind of freeze has occurred, and one or several kinds of issues", async () => {
    const routes = await world.database<{ route: string }[]>`select distinct route from transactions order by route`;
    const issues = await world.database<{ kind: string; count: number }[]>`
      select kind, count(*)::int as count from issues group by kind`;
    if (process.env["MONEY_LOUD"] === "1")
      process.stderr.write(`${JSON.stringify({ ...seen, frozen: [...seen.frozen], routes, issues })}\n`);
    expect(seen.hits).toBeGreaterThan(0);
    expect([...seen.frozen].toSorted()).toEqual(FREEZES.toSorted());
    expect(routes.map(({ route }) => route)).toEqual(["attested_terminal", "cash", "dynamic_qr", "smart_pos"]);
    // `STORY` always raises one kind, and random runs raise others. `issue-kinds.test.ts` reaches every kind.
    expect(issues.length).toBeGreaterThanOrEqual(RUNS < 10 ? 1 : 4);
  });
});
