/** What a file exports, another file imports: then a reader knows by the file alone what may change. */
import { importsOf, isTest, masked, resolvedImport, type SourceFile } from "./source-file.ts";

/** Others import what is in `clients/`. */
const UNCHECKED = "clients/";

const EXPORT = /^export (?:abstract )?(?:async )?(?:function\*?|const|let|class|interface|type|enum) ([\w$]+)/gm;
const isTypeScript = ({ path }: SourceFile): boolean => /\.tsx?$/.test(path);
const isScript = ({ path }: SourceFile): boolean => /\.(tsx?|mts|mjs)$/.test(path);
const isChecked = (file: SourceFile): boolean =>
  isTypeScript(file) && !isTest(file) && !file.path.startsWith(UNCHECKED);

/** One sentence for each export whose name is in no file that imports its file. Tests count as such files. */
export function unusedExports(files: readonly SourceFile[]): readonly string[] {
  const importers = new Map<string, SourceFile[]>();
  for (const file of files.filter(isScript)) {
    const imported = importsOf(file).flatMap(({ specifier }) => resolvedImport(file, specifier) ?? []);
    for (const path of new Set(imported)) importers.set(path, [...(importers.get(path) ?? []), file]);
  }
  return files.filter(isChecked).flatMap((file) => {
    const names = [...masked(file.text, "comments and strings").matchAll(EXPORT)].map(([, name = ""]) => name);
    const used = new Set((importers.get(file.path) ?? []).flatMap(wordsOf));
    return names
      .filter((name) => !used.has(name))
      .map((name) => `${file.path} exports ${name}, which no other file imports; remove the word export.`);
  });
}

const wordsOf = (file: SourceFile): readonly string[] => masked(file.text, "comments").match(/[\w$]+/g) ?? [];
