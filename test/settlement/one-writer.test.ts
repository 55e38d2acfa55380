import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "..", "..");
const FOLDERS = ["machines", "gateway", "services", "clients", "deploy"];
const WRITES_TRANSACTIONS =
  /\b(insert\s+into|update|delete\s+from|merge\s+into|copy|truncate(\s+table)?)\s+(only\s+)?("?public"?\.)?"?transactions\b/gi;

/** Migrations that are history: seams that the one of 0030 has replaced, and the naming of older money there. */
const HISTORY = [
  "services/db/migrations/0002_orders_and_transactions.sql: insert into transactions",
  "services/db/migrations/0014_one_money_pays_once.sql: insert into transactions",
  "services/db/migrations/0014_one_money_pays_once.sql: update transactions",
  "services/db/migrations/0018_money_of_an_account.sql: insert into transactions",
  "services/db/migrations/0018_money_of_an_account.sql: update transactions",
  "services/db/migrations/0020_every_name_of_a_money.sql: insert into transactions",
  "services/db/migrations/0023_accounts_of_schemes.sql: insert into transactions",
];

test("I2: one statement of the whole product writes transactions, and it stands in the payment seam", () => {
  const found = FOLDERS.flatMap(filesBelow).flatMap((path) =>
    [...readFileSync(path, "utf8").matchAll(WRITES_TRANSACTIONS)].map(
      (match) => `${relative(ROOT, path)}: ${match[0].toLowerCase()}`,
    ),
  );
  expect(found.toSorted()).toEqual(
    [...HISTORY, "services/db/migrations/0030_settled_references.sql: insert into transactions"].toSorted(),
  );
  // Those before are gone, so that they cannot be asked any more.
  const textOf = (migration: string): string => readFileSync(join(ROOT, "services/db/migrations", migration), "utf8");
  expect(textOf("0014_one_money_pays_once.sql")).toContain("drop function settle_against_order(");
  expect(textOf("0020_every_name_of_a_money.sql")).toContain("drop function settle_against_order(");
  expect(textOf("0023_accounts_of_schemes.sql")).toContain("create or replace function settle_intent(");
  expect(textOf("0030_settled_references.sql")).toContain("drop function settle_intent(");
});

function filesBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(ts|mjs|js|sql)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name));
}
