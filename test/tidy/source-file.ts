/** A file of the repository as the tidy rules see it, and the parts of its text that a rule may read. */
export interface SourceFile {
  /** From the repository's root, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

/** One complaint per violation: a sentence that names the place and what to do. */
export type Rule = (file: SourceFile) => readonly string[];

export const isCode = ({ path }: SourceFile): boolean => /\.(ts|mts|mjs)$/.test(path);
export const isTest = ({ path }: SourceFile): boolean => path.startsWith("test/");
export const baseName = ({ path }: SourceFile): string => path.slice(path.lastIndexOf("/") + 1);

/** Every match in a text, with its line number. */
export function linesWith(text: string, pattern: RegExp): readonly { readonly line: number; readonly found: string }[] {
  return [...text.matchAll(new RegExp(pattern, `${pattern.flags}g`))].map((match) => ({
    line: text.slice(0, match.index).split("\n").length,
    found: match[0].trim(),
  }));
}

interface Import {
  readonly line: number;
  readonly specifier: string;
}

/** A cache, because many rules need the imports of the same files. */
const knownImports = new WeakMap<SourceFile, readonly Import[]>();

/** What a file imports, exports from or loads by a literal name, with the line. */
export function importsOf(file: SourceFile): readonly Import[] {
  const known = knownImports.get(file) ?? findImports(file);
  knownImports.set(file, known);
  return known;
}

function findImports(file: SourceFile): readonly Import[] {
  const code = masked(file.text, "comments");
  // An import inside a string is an example; there the keyword itself is blanked out.
  const withoutStrings = masked(file.text, "comments and strings");
  const pattern = /\b(?:from|import|import\s*\(|require\s*\()\s*["']([^"']+)["']/g;
  return [...code.matchAll(pattern)]
    .filter((match) => withoutStrings[match.index] !== " ")
    .map((match) => ({ line: code.slice(0, match.index).split("\n").length, specifier: match[1] ?? "" }));
}

/** The path that a relative import leads to, or undefined for a package. */
export function resolvedImport(file: SourceFile, specifier: string): string | undefined {
  if (!specifier.startsWith(".")) return undefined;
  const parts = file.path.split("/").slice(0, -1);
  for (const part of specifier.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}

/** The package of an import: `@scope/name` or `name`, without what follows; undefined for relative and `node:` ones. */
export function packageOf(specifier: string): string | undefined {
  if (specifier.startsWith(".") || specifier.startsWith("node:")) return undefined;
  return /^(?:@[^/]+\/)?[^/]+/.exec(specifier)?.[0];
}

type Masked = "comments" | "strings" | "comments and strings";

const knownMasked = new Map<string, string>();

/** The text with comments, strings or both blanked out; every line keeps its number. */
export function masked(text: string, what: Masked): string {
  const key = `${what}\n${text}`;
  const known = knownMasked.get(key) ?? mask(text, what);
  knownMasked.set(key, known);
  return known;
}

function mask(text: string, what: Masked): string {
  let masking = "";
  let at = 0;
  /** Where code inside `${}` began: how many braces were open then. */
  const templates: number[] = [];
  let braces = 0;
  const keep = (end: number): void => {
    masking += text.slice(at, end);
    at = end;
  };
  const blank = (end: number, kind: "comments" | "strings"): void => {
    const part = text.slice(at, end);
    masking += what.includes(kind) ? part.replaceAll(/[^\n]/g, " ") : part;
    at = end;
  };
  while (at < text.length) {
    const char = text[at] ?? "";
    const pair = text.slice(at, at + 2);
    if (pair === "//") blank(endOf(text, /\n|$/g, at), "comments");
    else if (pair === "/*") blank(endOf(text, /\*\/|$/g, at + 2, true), "comments");
    else if (char === '"' || char === "'") blank(endOfQuoted(text, at, char), "strings");
    else if (char === "/" && startsRegExp(masking)) blank(endOfRegExp(text, at), "strings");
    else if (char === "`" || (char === "}" && templates.at(-1) === braces)) {
      if (char === "}") templates.pop();
      const end = endOfTemplatePart(text, at + 1);
      blank(end, "strings");
      if (text[end - 1] === "{") templates.push(braces);
    } else {
      if (char === "{") braces += 1;
      if (char === "}") braces -= 1;
      keep(at + 1);
    }
  }
  return masking;
}

function endOf(text: string, pattern: RegExp, from: number, past = false): number {
  pattern.lastIndex = from;
  const match = pattern.exec(text);
  return match === null ? text.length : match.index + (past ? match[0].length : 0);
}

/** A quoted string ends at its quote or at the end of the line, so that a stray quote affects only one line. */
function endOfQuoted(text: string, from: number, quote: string): number {
  for (let at = from + 1; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === quote) return at + 1;
    else if (text[at] === "\n") return at;
  }
  return text.length;
}

/** A template's part ends after its backtick or after the `${` that opens code. */
function endOfTemplatePart(text: string, from: number): number {
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === "`") return at + 1;
    else if (text.startsWith("${", at)) return at + 2;
  }
  return text.length;
}

function endOfRegExp(text: string, from: number): number {
  let isInClass = false;
  for (let at = from + 1; at < text.length; at += 1) {
    const char = text[at];
    if (char === "\\") at += 1;
    else if (char === "\n") return at;
    else if (char === "[") isInClass = true;
    else if (char === "]") isInClass = false;
    else if (char === "/" && !isInClass) return at + 1;
  }
  return text.length;
}

/** Whether a slash after this code begins a regular expression and not a division. */
function startsRegExp(before: string): boolean {
  return /(?:^|[(,=:[!&|?{};+]|\b(?:return|of|case))$/.test(before.trimEnd());
}
