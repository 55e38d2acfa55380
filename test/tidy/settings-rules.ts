/** Every setting that the product reads is in a table of the documents, so that an operator need not search the source. */
import { baseName, isCode, isTest, masked, type SourceFile } from "./source-file.ts";

/** Variables that the operating system sets for every process, and variables that are not settings of this product. */
const OF_THE_SYSTEM: ReadonlySet<string> = new Set(["PATH", "HOME"]);

/** A key of a settings schema. */
const SCHEMA_KEY = /^\s+([A-Z][A-Z0-9_]{2,}):/gm;
/** Matches a direct read of the environment. */
const DIRECT_READ = /\b(?:env|environment)(?:\.([A-Z][A-Z0-9_]{2,})\b|\[\s*"([A-Z][A-Z0-9_]{2,})"\s*\])/g;

/** The settings that a file of the product reads. */
export function settingsIn(file: SourceFile): readonly string[] {
  if (!isCode(file) || isTest(file)) return [];
  const code = masked(file.text, "comments");
  const keys = baseName(file) === "settings.ts" ? [...code.matchAll(SCHEMA_KEY)] : [];
  const names = [...keys, ...code.matchAll(DIRECT_READ)].map(([, key, quoted]) => key ?? quoted ?? "");
  return [...new Set(names)].filter((name) => !OF_THE_SYSTEM.has(name));
}

/** One sentence for each setting that no table of these documents explains. */
export function settingsAreExplained(files: readonly SourceFile[], documents: string): readonly string[] {
  const rows = new Set(documents.split("\n").flatMap((line) => /^\|([^|]*)\|/.exec(line)?.[1]?.match(/\w+/g) ?? []));
  return files.flatMap((file) =>
    settingsIn(file)
      .filter((name) => !rows.has(name))
      .map((name) => `${file.path} reads ${name}, which has no row in docs/settings.md.`),
  );
}
