/**
 * Header dictionaries: which names a provider gives its columns, by language and generation. A header is matched as a whole
 * row: it has each required column of one entry once, in any order and beside unknown columns. Without a match the file is
 * refused; no column is guessed.
 */
import { StatementRefusedError } from "../format.ts";
import { FORMAT_LIMITS } from "../limits.ts";
import { emptyFile } from "../statement-text.ts";
import type { CsvRow, HeaderRule } from "./read-csv.ts";

export interface DictionaryEntry<Field extends string> {
  /** For example "German, 2026". */
  readonly name: string;
  /** A column may have several names: the first one that the header has counts. One name twice in a header is refused. */
  readonly columns: Readonly<Partial<Record<Field, readonly string[]>>>;
  /** The columns that a header of this entry must have. */
  readonly required: readonly Field[];
  /** Further names of this report: their columns become details, and are not unknown. */
  readonly informative?: readonly string[];
  /** Fields whose column this report may have twice: the first one counts, and the second one becomes a detail. */
  readonly repeated?: readonly Field[];
}

export interface HeaderDictionary<Field extends string> {
  /** The provider's report, for the sentence of a refusal. */
  readonly report: string;
  /** Grows with each change; it is part of the format's version. */
  readonly version: number;
  readonly entries: readonly DictionaryEntry<Field>[];
}

/** The columns of one file, found by their names. */
export class BoundHeader<Field extends string> {
  readonly entry: DictionaryEntry<Field>;
  readonly columns: readonly string[];
  readonly #indexes: ReadonlyMap<Field, number>;
  readonly #unbound: readonly { readonly index: number; readonly name: string }[];

  constructor(entry: DictionaryEntry<Field>, columns: readonly string[], indexes: ReadonlyMap<Field, number>) {
    this.entry = entry;
    this.columns = columns;
    this.#indexes = indexes;
    const bound = new Set(indexes.values());
    this.#unbound = columns
      .map((name, index) => ({ index, name: name.trim() }))
      .filter(({ index }) => !bound.has(index));
  }

  has(field: Field): boolean {
    return this.#indexes.has(field);
  }

  /** The column's name as in the file, or the field's where the file has no such column. */
  nameOf(field: Field): string {
    return this.columns[this.#indexes.get(field) ?? -1] ?? field;
  }

  /** Without the spaces around it; "" where the file has no such column. */
  value(row: CsvRow, field: Field): string {
    const index = this.#indexes.get(field);
    return index === undefined ? "" : (row.fields[index] ?? "").trim();
  }

  /** The fields of the columns that the dictionary does not name, and of these ones besides; for a line's `details`. */
  *details(row: CsvRow, also: readonly Field[] = []): Generator<readonly [name: string, value: string]> {
    for (const field of also) yield [this.nameOf(field), this.value(row, field)];
    for (const { index, name } of this.#unbound) yield [name || `column ${index + 1}`, row.fields[index] ?? ""];
  }

  get unknownColumns(): readonly string[] {
    const informative = new Set(this.entry.informative?.map(nameKey));
    return this.#unbound.map(({ name }) => name).filter((name) => name !== "" && !informative.has(nameKey(name)));
  }
}

/** Undefined when no entry has this header. Throws `StatementRefusedError` when a column is there twice. */
export function bindHeader<Field extends string>(
  columns: readonly string[],
  dictionary: HeaderDictionary<Field>,
): BoundHeader<Field> | undefined {
  const places = placesOf(columns);
  const matches = dictionary.entries
    .filter((entry) => entry.required.every((field) => namesOf(entry, field).some((name) => places.has(nameKey(name)))))
    .map((entry) => new BoundHeader(entry, columns, indexesOf(entry, places)))
    // The first entry wins among those that know as many columns: entries are in the order of their generations.
    .toSorted((first, second) => first.unknownColumns.length - second.unknownColumns.length);
  return matches[0];
}

/** The rule that finds a dictionary's header in the first lines of a file. */
export function dictionaryRule<Field extends string>(dictionary: HeaderDictionary<Field>): HeaderRule {
  return {
    accepts: (columns) => bindHeader(columns, dictionary) !== undefined,
    refusal: (lines) => unknownHeader(lines, dictionary),
  };
}

function indexesOf<Field extends string>(
  entry: DictionaryEntry<Field>,
  places: ReadonlyMap<string, readonly number[]>,
): ReadonlyMap<Field, number> {
  const indexes = new Map<Field, number>();
  for (const field of Object.keys(entry.columns) as Field[]) {
    const name = namesOf(entry, field).find((candidate) => places.has(nameKey(candidate))) ?? "";
    const [index, second] = places.get(nameKey(name)) ?? [];
    if (second !== undefined && name !== "" && entry.repeated?.includes(field) !== true) throw twice(name);
    if (index !== undefined && name !== "") indexes.set(field, index);
  }
  return indexes;
}

function namesOf<Field extends string>(entry: DictionaryEntry<Field>, field: Field): readonly string[] {
  return entry.columns[field] ?? [];
}

function placesOf(columns: readonly string[]): ReadonlyMap<string, readonly number[]> {
  const places = new Map<string, number[]>();
  for (const [index, column] of columns.entries()) {
    const key = nameKey(column);
    const known = places.get(key);
    if (known === undefined) places.set(key, [index]);
    else known.push(index);
  }
  return places;
}

/** Exporters differ in capital letters, in kinds of spaces and apostrophes, and in how an accent is composed. */
function nameKey(name: string): string {
  return name.normalize("NFC").replaceAll(/\s+/gu, " ").replaceAll("’", "'").trim().toLowerCase();
}

function twice(name: string): StatementRefusedError {
  const sentence = `The header has the column ${JSON.stringify(name)} twice, so it is unclear which one counts; store a mapping for this header and import the file with it.`;
  return new StatementRefusedError("unknown_header", sentence);
}

/** Names the unknown and the missing columns of the line that is most similar to an entry. */
function unknownHeader<Field extends string>(
  lines: readonly (readonly string[])[],
  dictionary: HeaderDictionary<Field>,
): StatementRefusedError {
  if (lines.length === 0) return emptyFile();
  const compared = lines.flatMap((line) => dictionary.entries.map((entry) => compare(line, entry)));
  const [closest] = compared.toSorted((a, b) => b.known - a.known || a.missing.length - b.missing.length);
  const known = new Set(dictionary.entries.flatMap((entry) => [...keysOf(entry)]));
  const unknown = closest?.line.filter((name) => name.trim() !== "" && !known.has(nameKey(name))) ?? [];
  const parts = [
    ...(unknown.length > 0 ? [`it has unknown columns (${listed(unknown)})`] : []),
    ...(closest !== undefined && closest.missing.length > 0 ? [`it lacks ${listed(closest.missing)}`] : []),
  ];
  const sentence = `The file has no known header of ${dictionary.report}: ${parts.join(" and ")}; store a mapping for this header and import the file with it.`;
  return new StatementRefusedError("unknown_header", sentence);
}

function compare<Field extends string>(line: readonly string[], entry: DictionaryEntry<Field>) {
  const places = placesOf(line);
  const missing = entry.required
    .map((field) => namesOf(entry, field))
    .filter((names) => !names.some((name) => places.has(nameKey(name))))
    .map(([first = ""]) => first);
  const keys = keysOf(entry);
  return { line, missing, known: line.filter((name) => keys.has(nameKey(name))).length };
}

function keysOf<Field extends string>(entry: DictionaryEntry<Field>): ReadonlySet<string> {
  const names = (Object.keys(entry.columns) as Field[]).flatMap((field) => namesOf(entry, field));
  return new Set([...names, ...(entry.informative ?? [])].map(nameKey));
}

function listed(names: readonly string[]): string {
  const { namedColumns, detailNameCharacters } = FORMAT_LIMITS;
  const shown = names.slice(0, namedColumns).map((name) => JSON.stringify(name.trim().slice(0, detailNameCharacters)));
  const more = names.length - shown.length;
  return more > 0 ? `${shown.join(", ")} and ${more} more` : shown.join(", ");
}
