/** Which compression a client accepts (RFC 9110, 12.5.3), of the two that every browser and most programs know. */

export type ContentCoding = "br" | "gzip";

/** The better one first: Brotli is smaller. */
const CODINGS: readonly ContentCoding[] = ["br", "gzip"];

/** The coding to use; undefined for none, which every client accepts. */
export function acceptedCoding(header: string): ContentCoding | undefined {
  const weights = new Map<string, number>();
  for (const entry of header.toLowerCase().split(",")) {
    const [coding = "", ...parameters] = entry.split(";").map((part) => part.trim());
    const weight = parameters.find((parameter) => parameter.startsWith("q="));
    weights.set(coding, weight === undefined ? 1 : Number(weight.slice("q=".length)));
  }
  const weightOf = (coding: string): number => weights.get(coding) ?? weights.get("*") ?? 0;
  const [best] = CODINGS.toSorted((left, right) => weightOf(right) - weightOf(left));
  return best !== undefined && weightOf(best) > 0 ? best : undefined;
}
