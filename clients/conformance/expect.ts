/** Expectations about an answer. Each function throws `Mismatch`, which names the expected and the actual value. */
import { isDeepStrictEqual } from "node:util";
import type { SuiteAnswer } from "./http.ts";

export class Mismatch extends Error {
  override readonly name = "Mismatch";
  readonly expected: string;
  readonly actual: string;

  constructor(what: string, expected: unknown, actual: unknown) {
    super(what);
    this.expected = typeof expected === "string" ? expected : show(expected);
    this.actual = show(actual);
  }
}

const show = (value: unknown): string => (value === undefined ? "nothing" : JSON.stringify(value));

export function expectSame(what: string, actual: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(actual, expected)) throw new Mismatch(what, expected, actual);
}

export function expectNot(what: string, actual: unknown, unwanted: unknown): void {
  if (isDeepStrictEqual(actual, unwanted)) throw new Mismatch(what, `anything but ${show(unwanted)}`, actual);
}

export function expectThat(what: string, isTrue: boolean, expected: string, actual: unknown): void {
  if (!isTrue) throw new Mismatch(what, expected, actual);
}

/** An answer in a report. The body of a success is left out, because it may contain a credential, a code or a password. */
export const shown = ({ status, text }: SuiteAnswer): string => (status < 300 ? String(status) : `${status} ${text}`);

export function expectStatus(answer: SuiteAnswer, ...statuses: readonly number[]): SuiteAnswer {
  if (!statuses.includes(answer.status))
    throw new Mismatch("status of the answer", statuses.join(" or "), shown(answer));
  return answer;
}

/** A refusal: its status and the `code` of its body. */
export function expectRefused(answer: SuiteAnswer, status: number, code?: string): Record<string, unknown> {
  expectStatus(answer, status);
  const body = objectOf(answer);
  if (typeof body["code"] !== "string") throw new Mismatch("body of the refusal", "a `code`", body);
  if (code !== undefined) expectSame("code of the refusal", body["code"], code);
  return body;
}

export function objectOf(answer: SuiteAnswer, name?: string): Record<string, unknown> {
  const whole = asObject("body of the answer", answer.body);
  return name === undefined ? whole : asObject(`\`${name}\``, whole[name]);
}

export function asObject(what: string, value: unknown): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Mismatch(what, "an object", value);
  return value as Record<string, unknown>;
}

const AMOUNT = /^-?\d{0,10}(?:\.\d{0,2})?$/;
const isDateTime = (value: unknown): boolean =>
  typeof value === "string" &&
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/.test(value) &&
  !Number.isNaN(Date.parse(value));

const TYPES = {
  integer: (value: unknown) => Number.isInteger(value),
  string: (value: unknown) => typeof value === "string",
  text: (value: unknown) => typeof value === "string" && value !== "",
  strings: (value: unknown) => Array.isArray(value) && value.every((each) => typeof each === "string"),
  "date-time": isDateTime,
  amount: (value: unknown) => typeof value === "string" && /\d/.test(value) && AMOUNT.test(value),
  object: (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value),
} as const;

/** With a larger difference, the clock of the service or of the suite is wrong. */
const CLOCK_MS = 60_000;

export function expectNow(what: string, value: unknown): void {
  const skewMs = Math.abs(Date.parse(String(value)) - Date.now());
  expectThat(what, skewMs < CLOCK_MS, "the current time", value);
}

/** Expects that a field exists and has its type. */
export function expectField(body: Record<string, unknown>, name: string, type: keyof typeof TYPES): void {
  if (!Object.hasOwn(body, name)) throw new Mismatch(`field \`${name}\``, "it is there", Object.keys(body));
  if (!TYPES[type](body[name])) throw new Mismatch(`field \`${name}\``, `a value of the type ${type}`, body[name]);
}
