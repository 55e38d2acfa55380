/** Small changes of an SQL function, and where the function is in the migrations. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Change } from "./change.ts";

const RULES: readonly (readonly [RegExp, string])[] = [
  [/ = (?!any)/g, " <> "],
  [/ = any /g, " <> all "],
  [/ <> /g, " = "],
  [/ !~ /g, " ~ "],
  [/ > /g, " < "],
  [/ \+ 1\b/g, " + 2"],
  [/ and /g, " or "],
  [/ or /g, " and "],
  [/ is not null/g, " is null"],
  [/ is null/g, " is not null"],
  [/\bif not (?!exists)/g, "if "],
  [/(?<!end )\bif (?!not |exists)/g, "if true or "],
  [/(?<!end )\bif (?!not |exists)/g, "if false and "],
  [/'[a-z_]+'/g, "'mutant'"],
  [/ (?:for update|desc|on conflict do nothing|limit 1|distinct)\b/g, " "],
  [/(?<=\n) *(?:(?:perform|insert|update|return)\b|[a-z_]+ :=)[^;]*;/g, " null;"],
];

/** The last migration that makes the function: the database has the function as it is there. */
export function migrationOf(checkout: string, name: string): string {
  const defines = new RegExp(`^create (?:or replace )?function ${name}\\(`, "m");
  const last = globSync("services/db/migrations/*.sql", { cwd: checkout })
    .toSorted()
    .findLast((file) => defines.test(readFileSync(join(checkout, file), "utf8")));
  if (last === undefined) throw new Error(`No migration makes an SQL function ${name}.`);
  return last;
}

/** From `create` to the end of the function that the migration makes. */
export function sqlFunctionIn(migration: string, name: string): { readonly start: number; readonly end: number } {
  const start = migration.lastIndexOf("create", migration.lastIndexOf(`function ${name}(`));
  const end = migration.indexOf("\n$$;", start);
  if (start < 0 || end < 0) throw new Error(`There is no SQL function ${name}.`);
  return { start, end: end + "\n$$;".length };
}

export function sqlChangesOf(migration: string, name: string): readonly Change[] {
  const { start, end } = sqlFunctionIn(migration, name);
  const body = migration.indexOf("\nbegin\n", start);
  const code = migration.slice(body, end).replaceAll(/--.*/g, (comment) => " ".repeat(comment.length));
  const line = (text: string): string => text.trim().replaceAll(/\s+/g, " ");
  return RULES.flatMap(([pattern, text]) =>
    [...code.matchAll(pattern)].map(({ index, 0: found }) => {
      const around = line(code.slice(Math.max(0, index - 25), index + found.length + 25));
      const what = `${line(found).slice(0, 60)} → ${line(text) || "nothing"} (${around.slice(0, 90)})`;
      const place = { start: body + index, end: body + index + found.length };
      return { ...place, text, what, form: "expression" as const, isAtLoad: false };
    }),
  );
}
