/**
 * Patterns that take a reference out of a text, in a subset of regular expressions that cannot run for long: a quantifier
 * follows one character or class, never a group; it repeats a bounded number of times; and few of them vary. There are no
 * look-arounds and no back references.
 */

const EXTRACT_LIMITS = {
  patternCharacters: 200,
  /** How many characters of a text are searched: a reference after them is not found. */
  textCharacters: 500,
  /** Most repetitions of one character; `+` and `*` mean up to this. No known reference is longer. */
  repetitions: 64,
  /** Quantifiers that vary. The steps of a search grow with the repetitions to the power of the number of these quantifiers. */
  varyingQuantifiers: 2,
  alternatives: 8,
} as const;

export interface ExtractPattern {
  /** What the group matches, or the whole pattern where it has no group; "" when the text does not match. */
  readonly extract: (text: string) => string;
}

/** One atom: an escaped class or character, a class in brackets, a dot or a literal character. */
const ATOM = /^(?:\\[dDwWsS]|\\[.\\+*?()[\]{}|^$/-]|\[\^?(?:\\[dDwWsS\\\]^-]|[^\\[\]])+\]|[^\\[\](){}|^$*+?])/u;
const QUANTIFIER = /^(?:([*+?])|\{(\d{1,3})(?:,(\d{1,3}))?\})/;
const GROUP = /^\((\?:)?/;

/** The pattern, or one sentence about why it is refused. */
export function extractPattern(source: string, ignoreCase: boolean): ExtractPattern | { readonly reason: string } {
  const { patternCharacters } = EXTRACT_LIMITS;
  if (source === "" || source.length > patternCharacters)
    return { reason: `A pattern has 1 to ${patternCharacters} characters.` };
  const bounded = boundedSource(source);
  if ("reason" in bounded) return bounded;
  try {
    const expression = new RegExp(bounded.source, ignoreCase ? "iu" : "u");
    return {
      extract: (text) => {
        const match = expression.exec(text.slice(0, EXTRACT_LIMITS.textCharacters));
        return match?.[1] ?? match?.[0] ?? "";
      },
    };
  } catch {
    return { reason: "The pattern is no regular expression." };
  }
}

/** The same pattern with a bound on each repetition. */
function boundedSource(source: string): { readonly source: string } | { readonly reason: string } {
  let bounded = "";
  let rest = source;
  let varying = 0;
  let alternatives = 1;
  let groups = 0;
  while (rest !== "") {
    const part = GROUP.exec(rest) ?? /^[)|^$]/.exec(rest);
    if (part !== null) {
      const [text, isNotCaptured] = part;
      if (text.startsWith("(") && rest.startsWith("(?") && isNotCaptured === undefined)
        return { reason: "A pattern has no look-arounds and no named groups." };
      if (text === "(") groups += 1;
      if (text === "|") alternatives += 1;
      rest = rest.slice(text.length);
      if (text === ")" && QUANTIFIER.test(rest)) return { reason: "A quantifier cannot follow a group." };
      bounded += text;
      continue;
    }
    const atom = ATOM.exec(rest)?.[0];
    if (atom === undefined)
      return { reason: `The pattern has something at ${JSON.stringify(rest.slice(0, 10))} that is not allowed.` };
    rest = rest.slice(atom.length);
    const quantifier = QUANTIFIER.exec(rest);
    const repeated = quantifier === null ? { text: "", varies: false } : repetition(quantifier);
    if (repeated === undefined) return { reason: `A character repeats ${EXTRACT_LIMITS.repetitions} times at most.` };
    if (repeated.varies) varying += 1;
    bounded += atom + repeated.text;
    rest = rest.slice(quantifier?.[0].length ?? 0);
  }
  if (varying > EXTRACT_LIMITS.varyingQuantifiers)
    return { reason: `A pattern has ${EXTRACT_LIMITS.varyingQuantifiers} quantifiers at most that vary.` };
  if (groups > 1) return { reason: "A pattern has one group at most; further ones begin with (?:." };
  if (alternatives > EXTRACT_LIMITS.alternatives)
    return { reason: `A pattern has ${EXTRACT_LIMITS.alternatives} alternatives at most.` };
  return { source: bounded };
}

function repetition(quantifier: RegExpExecArray): { readonly text: string; readonly varies: boolean } | undefined {
  const [, sign, least, most] = quantifier;
  const { repetitions } = EXTRACT_LIMITS;
  if (sign === "?") return { text: "?", varies: false };
  if (sign !== undefined) return { text: `{${sign === "+" ? 1 : 0},${repetitions}}`, varies: true };
  const from = Number(least);
  const to = Number(most ?? least);
  return from > to || to > repetitions ? undefined : { text: `{${from},${to}}`, varies: from !== to };
}
