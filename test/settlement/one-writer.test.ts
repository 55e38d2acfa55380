import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "..", "..");
const FOLDERS = ["machines", "gateway", "services", "clients", "deploy"];
const WRITES_TRANSACTIONS =
  /\b(insert\s+into|update|delete\s+from|merge\s+into|copy|truncate(\s+table)?)\s+(only\s+)?("?public"?\.)?"?transactions\b/gi;

test("I2: one statement of the whole product writes transactions, and it is in the payment seam", () => {
  const found = FOLDERS.flatMap(filesBelow).flatMap((path) =>
    [...readFileSync(path, "utf8").matchAll(WRITES_TRANSACTIONS)].map(
      (match) => `${relative(ROOT, path)}: ${match[0].toLowerCase()}`,
    ),
  );
  expect(found.toSorted()).toEqual([
    "services/db/migrations/0017_settle_intent.sql: insert into transactions",
    // The same function again, for the separate table of issues.
    "services/db/migrations/0025_issues.sql: insert into transactions",
    // The generated result of the migrations.
    "services/db/schema.sql: insert into transactions",
  ]);
});

function filesBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(ts|mjs|js|sql)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name));
}
