/**
 * Field :86:, what the bank says about an entry: free text, or text in sub-fields after a business transaction code of
 * three digits (`166?00…?20…?32…`), as banks in Germany, Austria, Poland and others write it.
 */

export interface Information {
  readonly text: string;
  /** EREF+ of the purpose: the EndToEndId; "" where there is none. */
  readonly endToEndId: string;
  /** KREF+ of the purpose: the account owner's reference when :61: only points here; "" where there is none. */
  readonly ownerReference: string;
  readonly details: readonly (readonly [name: string, value: string])[];
}

/** The purpose, in the order of its sub-fields. */
const PURPOSE = /^(?:2\d|6[0-3])$/;
/** Banks separate by these; other characters stand between numbers in ordinary text too ("717.76.00", "044/12"). */
const STRUCTURED = /^\s*(\d{3})([?~<>^|@§])(?=\d\d)/;
/** The keywords of SEPA. */
const KEYWORDS = "EREF|KREF|MREF|BREF|RREF|TREF|CRED|DEBT|COAM|OAMT|SVWZ|ABWA|ABWE".split("|");
/** Between two sub-fields; a bank may cut a keyword there. */
const CUT = "\n";
/** Most banks begin a sub-field with each keyword, some write them one after another with a space between. */
const KEYWORD = new RegExp(
  `(?:^|${CUT})([A-Z]{4})[+:]|[ ${CUT}](${KEYWORDS.map((word) => word.replaceAll(/\B/g, `${CUT}?`)).join("|")})${CUT}?\\+`,
  "g",
);
const NOT_PROVIDED = new Set(["NOTPROVIDED", "NOT PROVIDED", "NONREF"]);

export function readInformation(lines: readonly string[]): Information {
  const [, code, separator] = STRUCTURED.exec(lines[0] ?? "") ?? [];
  if (code === undefined || separator === undefined) return plain(lines);
  // The bank cuts lines at 65 characters, anywhere: they are put together without a space.
  const parts = lines
    .join("")
    .trim()
    .slice(code.length + 1)
    .split(separator);
  const fields = subFields(parts, separator);
  const purpose = fields.filter(([name]) => PURPOSE.test(name)).map(([, value]) => value);
  const keywords = keywordsOf(purpose.join(CUT));
  const text = keywords.find(([name]) => name === "SVWZ")?.[1].trim() ?? purpose.join("").trim();
  return {
    text: text === "" ? (fields.find(([name]) => name === "00")?.[1] ?? "") : text,
    endToEndId: referenceOf(keywords, "EREF"),
    ownerReference: referenceOf(keywords, "KREF"),
    details: [
      ["86", code],
      ...fields.filter(([name]) => !PURPOSE.test(name)).map(([name, value]) => [`?${name}`, value.trim()] as const),
      ...keywords
        .filter(([name]) => name !== "SVWZ" && name !== "")
        .map(([name, value]) => [name, value.trim()] as const),
    ],
  };
}

/** Dutch banks name parts of free text: /EREF/…/; the text stays as it is. A reference may have slashes, too. */
function plain(lines: readonly string[]): Information {
  const text = lines.join("\n").trim();
  const eref = END_TO_END.exec(lines.join("").trimEnd())?.[1]?.trim() ?? "";
  return { text, endToEndId: NOT_PROVIDED.has(eref) ? "" : eref, ownerReference: "", details: [] };
}

const PARTS =
  "ADDR|BENM|BIC|BUSP|CDTRREF|CDTRREFTP|CNTP|CREF|CSID|CUID|EREF|IBAN|ID|INIT|ISDT|MARF|NAME|NRTX|ORDP|PREF|PURP|REMI|RTRN|SVCL|TRCD|TRTP|UCRD|UDTR|ULTB|ULTC|ULTD";
const END_TO_END = new RegExp(`(?:^|/)EREF/([^/].*?)(?://|/(?:${PARTS})/|/?$)`);

function referenceOf(keywords: readonly (readonly [name: string, value: string])[], keyword: string): string {
  const value = keywords.find(([name]) => name === keyword)?.[1].trim() ?? "";
  return NOT_PROVIDED.has(value) ? "" : value;
}

/** A separator inside a text is not followed by two digits. */
function subFields(parts: readonly string[], separator: string): readonly (readonly [name: string, value: string])[] {
  const fields: [string, string][] = [];
  for (const part of parts) {
    const last = fields.at(-1);
    if (/^\d\d/.test(part)) fields.push([part.slice(0, 2), part.slice(2)]);
    else if (last !== undefined) last[1] += separator + part;
  }
  return fields;
}

/** What stands before the first keyword has no name; what follows one belongs to it, up to the next. */
function keywordsOf(purpose: string): readonly (readonly [name: string, value: string])[] {
  const found = [...purpose.matchAll(KEYWORD)];
  const first = found[0]?.index ?? purpose.length;
  const values = found.map((match, index): readonly [string, string] => {
    const [all, begun, within] = match;
    const end = found[index + 1]?.index ?? purpose.length;
    return [joined(begun ?? within ?? ""), joined(purpose.slice(match.index + all.length, end))];
  });
  return [["", joined(purpose.slice(0, first))], ...values];
}

function joined(text: string): string {
  return text.replaceAll(CUT, "");
}
