/** Guards for data from outside. They accept unknown fields, so that a field that is added inside `v1` does not stop a device. */
type Check = (value: unknown) => boolean;

export const isText = (value: unknown): value is string => typeof value === "string";
/** The value if it is a text; otherwise an empty text. */
export const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
export const isFlag = (value: unknown): value is boolean => typeof value === "boolean";
export const isInteger = (value: unknown): value is number => Number.isSafeInteger(value);
export const listOf =
  (isItem: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(isItem);
export const orNull =
  (isValue: Check): Check =>
  (value) =>
    value === null || isValue(value);
export const oneOf =
  (words: readonly string[]): Check =>
  (value) =>
    isText(value) && words.indexOf(value) >= 0;

/** A guard for an object with these fields; it may have other fields. */
export function objectOf<T extends object>(
  fields: { readonly [K in keyof T]-?: Check },
): (value: unknown) => value is T {
  return (value): value is T =>
    typeof value === "object" &&
    value !== null &&
    (Object.keys(fields) as (keyof T)[]).every((name) => fields[name]((value as T)[name]));
}

/** The value of a JSON text; undefined for invalid JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
