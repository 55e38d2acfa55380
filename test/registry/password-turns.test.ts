/** Turns at the password checks: who has a place, and who is next. Here a check ends when the test ends it. */
import { describe, expect, test } from "vitest";
import { type Party, PasswordTurns } from "../../services/registry/passwords.ts";
import { refusalOf } from "./registry-fixture.ts";

const known = (key: string): Party => ({ lane: "known", key });
const other = (key: string): Party => ({ lane: "others", key });

function startTurns(limits: { readonly atOnce?: number; readonly ofOneLane?: number; readonly places?: number } = {}) {
  const { atOnce = 3, ofOneLane = 2, places = 8 } = limits;
  const turns = new PasswordTurns({
    checksAtOnce: atOnce,
    checksOfLane: { known: ofOneLane, others: ofOneLane },
    places: { known: places, others: places },
  });
  const started: { readonly key: string; readonly end: () => void }[] = [];
  return {
    started,
    keys: () => started.map(({ key }) => key),
    ask: (party: Party, key = party.key): Promise<void> =>
      turns.hold(party, (turn) =>
        turn(() => {
          const { promise, resolve } = Promise.withResolvers<void>();
          started.push({ key, end: resolve });
          return promise;
        }),
      ),
    hold: (party: Party, work: () => Promise<void>) => turns.hold(party, work),
  };
}
/** Runs all callbacks that wait only for promises. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("the lanes of the password checks", () => {
  test("a flood of others: a known person's check starts at once, and the others never have all places", async () => {
    const { ask, keys } = startTurns();
    const asked = ["a", "b", "c", "d"].map((key) => ask(other(key)));
    await settle();
    expect(keys()).toEqual(["a", "b"]);
    asked.push(ask(known("ana")));
    await settle();
    expect(keys()).toEqual(["a", "b", "ana"]);
  });

  test("a flood of known people: a check of another person starts at once", async () => {
    const { ask, keys } = startTurns();
    for (const key of ["a", "b", "c", "d"]) void ask(known(key));
    void ask(other("new"));
    await settle();
    expect(keys()).toEqual(["a", "b", "new"]);
  });

  test("known people and others wait: a known person is next, and the others keep one place", async () => {
    const { ask, started, keys } = startTurns();
    for (const key of ["a", "b", "c"]) void ask(other(key));
    for (const key of ["ana", "ben", "cem"]) void ask(known(key));
    await settle();
    expect(keys()).toEqual(["a", "b", "ana"]);
    started[0]?.end();
    await settle();
    expect(keys().slice(3)).toEqual(["ben"]);
    started[1]?.end();
    await settle();
    expect(keys().slice(4)).toEqual(["c"]);
    started[2]?.end();
    await settle();
    expect(keys().slice(5)).toEqual(["cem"]);
  });

  test("a check that fails: its turn ends, and its place is free", async () => {
    const turns = new PasswordTurns({
      checksAtOnce: 1,
      checksOfLane: { known: 1, others: 1 },
      places: { known: 1, others: 1 },
    });
    const fail = () => turns.hold(known("ana"), (turn) => turn(() => Promise.reject(new Error("no memory"))));
    await expect(fail()).rejects.toThrow("no memory");
    await expect(fail()).rejects.toThrow("no memory");
  });
});

describe("the parties of one lane", () => {
  test("take turns: a party with one check waits for one check of each other party, not for all of them", async () => {
    const { ask, started, keys } = startTurns({ ofOneLane: 1 });
    for (const name of ["a1", "a2", "a3"]) void ask(other("a"), name);
    for (const name of ["b1", "b2"]) void ask(other("b"), name);
    void ask(other("c"), "c1");
    for (let index = 0; index < 6; index += 1) {
      await settle();
      started[index]?.end();
    }
    expect(keys()).toEqual(["a1", "a2", "b1", "c1", "a3", "b2"]);
  });

  test("places: one party alone gets half of the free ones, and one stays for the next party", async () => {
    const { hold } = startTurns({ places: 8 });
    const never = (): Promise<void> => new Promise(() => undefined);
    for (let place = 0; place < 4; place += 1) void hold(other("a"), never);
    expect(await refusalOf(hold(other("a"), never))).toEqual({ code: "busy", retryAfterMs: 1_000 });
    void hold(other("b"), never);
    void hold(other("b"), never);
    expect((await refusalOf(hold(other("b"), never))).code).toBe("busy");
    void hold(other("c"), never);
    void hold(other("d"), never);
    expect((await refusalOf(hold(other("e"), never))).code).toBe("busy");
    await hold(known("ana"), () => Promise.resolve());
  });

  test("the work of a party ends: its place is free again", async () => {
    const { hold } = startTurns({ places: 2 });
    for (let round = 0; round < 5; round += 1) {
      await hold(other("a"), () => Promise.resolve());
      await expect(hold(other("a"), () => Promise.reject(new Error("throttled")))).rejects.toThrow("throttled");
    }
  });
});
