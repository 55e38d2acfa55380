/** The contract as sentences, which the checks quote, and the table that shows which check covers which sentence. */
import type { Check } from "./check.ts";
import { EXEMPT_PARTS, EXEMPT_SECTIONS, EXEMPTIONS } from "./exempt.ts";

export interface Sentence {
  /** The heading above the sentence. */
  readonly section: string;
  /** A sentence of text, or the cells of a table's row between bars. */
  readonly text: string;
}

const isRow = (line: string): boolean => line.startsWith("|");
const isRule = (line: string | undefined): boolean => /^\|[\s|:-]+\|$/.test(line ?? "");
const cellsOf = (line: string): string => {
  // A bar within backticks belongs to its cell.
  const cells = line.slice(1, -1).split(/(?<!\\)\|(?=(?:[^`]*`[^`]*`)*[^`]*$)/);
  return cells.map((cell) => cell.trim()).join(" | ");
};

/** The sentences of the contract, without headings, table heads and empty lines: no check can cover these. */
export function sentencesOf(markdown: string): readonly Sentence[] {
  const sentences: Sentence[] = [];
  let section = "";
  const lines = markdown.split("\n").map((line) => line.trim());
  for (const [index, line] of lines.entries()) {
    if (line.startsWith("#")) section = line.replace(/^#+\s*/, "");
    else if (isRow(line)) {
      if (!isRule(line) && !isRule(lines[index + 1])) sentences.push({ section, text: cellsOf(line) });
    } else if (line !== "") {
      const text = line.replace(/^(?:[-*]|\d+\.)\s+/, "");
      for (const each of text.split(/(?<=[.:;])\s+(?=[A-Z`])/)) sentences.push({ section, text: each });
    }
  }
  return sentences;
}

const BAR = " | ";
/** A quote with this many cells identifies a row by its beginning. Fewer do not: several rows begin with `status | string`. */
const CELLS_OF_A_BEGINNING = 3;

/** A quote is a whole row or its beginning. It must not be the end of a row: `name | string` also ends other rows. */
function isRowQuoted(row: string, quote: string): boolean {
  const whole = row.replace(/[\s|]+$/, "");
  return whole === quote || (quote.split(BAR).length >= CELLS_OF_A_BEGINNING && whole.startsWith(quote));
}

export const holdsSentence = ({ quotes }: Pick<Check, "quotes">, { text }: Sentence): boolean =>
  quotes.some((quote) =>
    text.includes(BAR) && quote.includes(BAR) ? isRowQuoted(text, quote) : text.includes(quote) || quote.includes(text),
  );

/** Why no check covers the sentence; undefined without a reason. */
export function exemptionOf({ section, text }: Sentence): string | undefined {
  return EXEMPT_SECTIONS[section] ?? EXEMPTIONS.find((exemption) => text.includes(exemption.text))?.reason;
}

const cell = (text: string): string => text.replaceAll("|", "\\|");

/** The checks of a sentence with the parts that they leave out, or the reason why it has none. */
function coverageOf(sentence: Sentence, checks: readonly Check[]): string {
  const ids = checks.filter((check) => holdsSentence(check, sentence)).map(({ id }) => `\`${id}\``);
  if (ids.length === 0) return `none: it ${exemptionOf(sentence) ?? "?"}`;
  const left = EXEMPT_PARTS.filter(({ text }) => sentence.text.includes(text));
  return [ids.join(", "), ...left.map(({ text, reason }) => `none of "${text}": it ${reason}`)].join("; ");
}

/** The table of `docs/conformance.md`: each sentence with the checks that cover it, or with the reason why none does. */
export function coverageTable(markdown: string, checks: readonly Check[]): string {
  const rows: string[] = [];
  let heading = "";
  for (const sentence of sentencesOf(markdown)) {
    if (sentence.section !== heading) {
      heading = sentence.section;
      rows.push("", `### ${heading}`, "", "| sentence | checks |", "|---|---|");
    }
    rows.push(`| ${cell(sentence.text)} | ${coverageOf(sentence, checks)} |`);
  }
  return `${rows.join("\n").trim()}\n`;
}
