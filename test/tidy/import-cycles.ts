/** No file imports itself by way of others. Imports of types count, because a reader follows them as well. */
import { importsOf, isCode, isTest, resolvedImport, type SourceFile } from "./source-file.ts";

/** One sentence for each group of files that import each other: it names the cycle from the first of them. */
export function importCycles(files: readonly SourceFile[]): readonly string[] {
  const imports = new Map(
    files.filter((file) => isCode(file) && !isTest(file)).map((file) => [file.path, pathsOf(file)]),
  );
  const done = new Set<string>();
  const complaints: string[] = [];
  const visit = (path: string, way: readonly string[]): void => {
    const at = way.indexOf(path);
    if (at >= 0) {
      const cycle = [...way.slice(at), path];
      complaints.push(`${cycle.join(" imports ")}; move what both need to the lower file.`);
    }
    if (at >= 0 || done.has(path)) return;
    for (const next of imports.get(path) ?? []) visit(next, [...way, path]);
    done.add(path);
  };
  for (const path of imports.keys()) visit(path, []);
  return complaints;
}

function pathsOf(file: SourceFile): readonly string[] {
  const paths = importsOf(file).flatMap(({ specifier }) => resolvedImport(file, specifier) ?? []);
  return [...new Set(paths)];
}
