/** What the virtual companion decides for a name and an amount, and that the documentation's table is this one. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  behaviourOf,
  DEFAULT_BEHAVIOUR,
  MAGIC_BEHAVIOURS,
  namedBehaviour,
  reportOf,
} from "../../clients/magic-behaviours.ts";
import { MAGIC_AMOUNTS } from "../../services/sandbox-provider/magic-amounts.ts";

const NAME_ENDINGS = MAGIC_BEHAVIOURS.map(({ nameEnding }) => nameEnding);
const AMOUNT_ENDINGS = MAGIC_BEHAVIOURS.flatMap(({ amountEnding }) => amountEnding ?? []);
const RUNS = { numRuns: 2_000 };

/** Names that come close: words of the table in any place and run together, beside whatever people write. */
const anyName = fc
  .tuple(
    fc.array(
      fc.oneof(fc.string(), fc.string({ unit: "grapheme" }), fc.constantFrom(...NAME_ENDINGS, "Till", "polls", "x")),
      { maxLength: 4 },
    ),
    fc.constantFrom("", " ", "-"),
  )
  .map(([words, between]) => words.join(between));
/** Said another way than in the product: the ending's words, not preceded by a letter or digit, and no word after them. */
const MAGIC_NAMES = NAME_ENDINGS.map((ending) => {
  const words = ending.split(" ").join(String.raw`[^\p{L}\p{N}]+`);
  return new RegExp(String.raw`(?<![\p{L}\p{N}])${words}[^\p{L}\p{N}]*$`, "u");
});
const saysNothing = (name: string): boolean => MAGIC_NAMES.every((magic) => !magic.test(name.toLowerCase()));
const plainName = anyName.filter(saysNothing);
const anyAmount = fc
  .tuple(fc.integer({ min: 0, max: 9_999_999_999 }), fc.integer({ min: 0, max: 99 }))
  .map(([whole, cents]) => `${whole}.${String(cents).padStart(2, "0")}`);

describe("the virtual companion", () => {
  it("approves for any other name and amount", () => {
    const plainAmount = anyAmount.filter((amount) => !AMOUNT_ENDINGS.some((ending) => amount.endsWith(ending)));
    fc.assert(
      fc.property(plainName, plainAmount, (name, amount) => {
        expect(behaviourOf(name, amount)).toBe(DEFAULT_BEHAVIOUR);
      }),
      RUNS,
    );
    expect(reportOf(DEFAULT_BEHAVIOUR)).toEqual({ outcome: "reported_success", providerCode: "00" });
  });

  it("goes by the amount's last two digits where the name says nothing", () => {
    const magic = fc.constantFrom(...MAGIC_BEHAVIOURS.filter(({ amountEnding }) => amountEnding !== null));
    fc.assert(
      fc.property(plainName, fc.nat(), magic, (name, whole, { amountEnding, behaviour }) => {
        expect(behaviourOf(name, `${whole}.${amountEnding}`)).toBe(behaviour);
        expect(behaviourOf(name, `${whole}${amountEnding}`)).toBe(behaviour);
      }),
      RUNS,
    );
    expect(behaviourOf("Till", "1")).toBe("decline");
    expect(behaviourOf("Till", "0.01")).toBe("decline");
    expect(behaviourOf("Till", "1.00")).toBe("approve");
  });

  it("goes by a name's last words before it looks at the amount, in any case and after any separator", () => {
    const magic = fc.constantFrom(...MAGIC_BEHAVIOURS);
    const separator = fc.constantFrom(" ", "-", " – ", "_", ": ");
    fc.assert(
      fc.property(anyName, separator, magic, anyAmount, (name, between, { nameEnding, behaviour }, amount) => {
        for (const ending of [nameEnding, nameEnding.toUpperCase(), `${nameEnding} `])
          expect(behaviourOf(`${name}${between}${ending}`, amount)).toBe(behaviour);
      }),
      RUNS,
    );
    for (const { nameEnding, behaviour } of MAGIC_BEHAVIOURS) expect(namedBehaviour(nameEnding)).toBe(behaviour);
  });

  it("takes words, not letters, and only the last ones", () => {
    for (const name of ["", "Till 3", "declines never", "Till declinesx", "Undeclines", "Till polls", "offline"])
      expect(namedBehaviour(name), name).toBeUndefined();
  });
});

describe("the table", () => {
  it("has each ending once, and no name that ends in another one", () => {
    expect(new Set(AMOUNT_ENDINGS).size).toBe(AMOUNT_ENDINGS.length);
    expect(AMOUNT_ENDINGS.every((ending) => /^\d\d$/.test(ending))).toBe(true);
    for (const ending of NAME_ENDINGS) expect(NAME_ENDINGS.filter((other) => ending.endsWith(other))).toEqual([ending]);
  });

  it("means by an amount what the sandbox provider means, where both have it", () => {
    const atProvider = new Map<string, string>(MAGIC_AMOUNTS.map(({ ending, scenario }) => [ending, scenario]));
    const both = MAGIC_BEHAVIOURS.flatMap(({ amountEnding, behaviour }) => {
      const scenario = atProvider.get(amountEnding ?? "");
      return scenario === undefined ? [] : [[behaviour, scenario]];
    });
    expect(both).toEqual([
      ["decline", "decline"],
      ["buyer_cancel", "buyer_cancel"],
      ["never_answers", "never_pays"],
      ["report_twice", "duplicate_callback"],
      ["late_success", "late_success"],
      ["unknown", "unknown"],
      ["provider_down", "provider_down"],
    ]);
  });

  it("in docs/sandbox.md is the data, row by row", () => {
    const text = readFileSync(new URL("../../docs/sandbox.md", import.meta.url), "utf8");
    const rows = text
      .split("\n")
      .filter((line) => /^\| `[a-z ]+` /.test(line))
      .map((line) => line.split("|").map((cell) => cell.trim()));
    expect(rows.map(([, name, amount, companion, outcome]) => [name, amount, companion, outcome])).toEqual(
      MAGIC_BEHAVIOURS.map(({ nameEnding, amountEnding, companion, outcome }) => [
        `\`${nameEnding}\``,
        amountEnding === null ? "–" : `\`${amountEnding}\``,
        companion,
        outcome,
      ]),
    );
  });

  it("is printed by its program as one line of JSON", () => {
    const script = new URL("../../clients/print-magic-behaviours.ts", import.meta.url).pathname;
    const printed: unknown = JSON.parse(execFileSync(process.execPath, [script], { encoding: "utf8" }));
    expect(printed).toEqual({ magic_behaviours: MAGIC_BEHAVIOURS });
  });
});
