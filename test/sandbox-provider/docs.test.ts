/** docs/sandbox.md documents the sandbox provider: its table is the data, row by row. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { MAGIC_AMOUNTS } from "../../services/sandbox-provider/magic-amounts.ts";

it("the table of amounts in docs/sandbox.md equals the provider's", () => {
  const text = readFileSync(new URL("../../docs/sandbox.md", import.meta.url), "utf8");
  const rows = text
    .split("\n")
    .filter((line) => /^\| `\d\d` /.test(line))
    .map((line) => line.split("|").map((cell) => cell.trim()));
  expect(rows.map(([, ending, provider, outcome]) => [ending, provider, outcome])).toEqual(
    MAGIC_AMOUNTS.map(({ ending, provider, outcome }) => [`\`${ending}\``, provider, outcome]),
  );
});
