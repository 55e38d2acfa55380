/**
 * The array types of our statements. The driver would read the array types of the database with each new connection: that is
 * a round trip, and a third of PostgreSQL's work for a connection.
 */
import type { PostgresType } from "postgres";
import { parse } from "postgres-array";

type Elements = (string | number | null)[];

/** For the option `types` of the driver. The ids are the same in each database (`pg_type.dat`). An element may be null. */
export function arrayTypes(
  parseBigint: (text: string) => number,
): Record<"ints" | "texts" | "bigints", PostgresType<Elements>> {
  return { ints: arrayType(1007, Number), texts: arrayType(1009, String), bigints: arrayType(1016, parseBigint) };
}

function arrayType(oid: number, parseElement: (text: string) => string | number): PostgresType<Elements> {
  return {
    to: oid,
    from: [oid],
    // A text is an array that the caller has written.
    serialize: (value: Elements | string) =>
      typeof value === "string" ? value : `{${value.map(elementText).join(",")}}`,
    parse: (text: string) => parse(text, parseElement),
  };
}

function elementText(element: Elements[number]): string {
  return element === null ? "null" : `"${String(element).replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}
