/**
 * Field :86:, the bank's information about an entry. It is free text, or a business transaction code of three digits with
 * sub-fields (`166?00…?20…?32…`), as banks in Germany, Austria, Poland and other countries write it.
 */

interface Information {
  readonly text: string;
  /** EREF+ of the purpose: the EndToEndId; "" where there is none. */
  readonly endToEndId: string;
  /** KREF+ of the purpose: the account owner's reference, where :61: only refers to it; "" where there is none. */
  readonly ownerReference: string;
  readonly details: readonly (readonly [name: string, value: string])[];
}

/** The names of the sub-fields that form the purpose. */
const PURPOSE = /^(?:2\d|6[0-3])$/;
/** The separators of banks. Other characters also occur between the numbers of free text ("717.76.00", "044/12"). */
const STRUCTURED = /^\s*(\d{3})([?~<>^|@§])(?=\d\d)/;
/** The SEPA keywords inside the purpose. */
const KEYWORDS = "EREF|KREF|MREF|BREF|RREF|TREF|CRED|DEBT|COAM|OAMT|SVWZ|ABWA|ABWE".split("|");
/** Joins two sub-fields of the purpose. A bank may cut a keyword at this place. */
const CUT = "\n";
/** Most banks begin a sub-field with each keyword. Some write several in one sub-field, with a space before each. */
const KEYWORD = new RegExp(
  `(?:^|${CUT})([A-Z]{4})[+:]|[ ${CUT}](${KEYWORDS.map((word) => word.replaceAll(/\B/g, `${CUT}?`)).join("|")})${CUT}?\\+`,
  "g",
);
const NOT_PROVIDED = new Set(["NOTPROVIDED", "NOT PROVIDED", "NONREF"]);

export function readInformation(lines: readonly string[]): Information {
  const [, code, separator] = STRUCTURED.exec(lines[0] ?? "") ?? [];
  if (code === undefined || separator === undefined) return plain(lines);
  // The bank cuts lines at 65 characters, also inside a word. So lines are joined without a space.
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

/** Free text, which stays unchanged. Dutch banks name its parts, for example `/EREF/…/`. A reference may contain slashes. */
function plain(lines: readonly string[]): Information {
  const text = lines.join("\n").trim();
  const eref = END_TO_END.exec(lines.join("").trimEnd())?.[1]?.trim() ?? "";
  return { text, endToEndId: NOT_PROVIDED.has(eref) ? "" : eref, ownerReference: "", details: [] };
}

/** The names of such parts. */
const PARTS =
  "ADDR|BENM|BIC|BUSP|CDTRREF|CDTRREFTP|CNTP|CREF|CSID|CUID|EREF|IBAN|ID|INIT|ISDT|MARF|NAME|NRTX|ORDP|PREF|PURP|REMI|RTRN|SVCL|TRCD|TRTP|UCRD|UDTR|ULTB|ULTC|ULTD";
const END_TO_END = new RegExp(`(?:^|/)EREF/([^/].*?)(?://|/(?:${PARTS})/|/?$)`);

function referenceOf(keywords: readonly (readonly [name: string, value: string])[], keyword: string): string {
  const value = keywords.find(([name]) => name === keyword)?.[1].trim() ?? "";
  return NOT_PROVIDED.has(value) ? "" : value;
}

/** A separator before two digits begins a sub-field; any other separator belongs to the text. */
function subFields(parts: readonly string[], separator: string): readonly (readonly [name: string, value: string])[] {
  const fields: [string, string][] = [];
  for (const part of parts) {
    const last = fields.at(-1);
    if (/^\d\d/.test(part)) fields.push([part.slice(0, 2), part.slice(2)]);
    else if (last !== undefined) last[1] += separator + part;
  }
  return fields;
}

/** Divides the purpose at its keywords. The text before the first keyword has the name "". */
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
