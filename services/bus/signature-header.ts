/**
 * The header of a signed callback: `x-provider-signature: t=<unix seconds>,v1=<hex>`. The gateway reads its form, so that what
 * carries no signature takes no place of what may carry a right one; only the providers service can check it.
 */

/** The one header that adapters read. */
export const SIGNATURE_HEADER = "x-provider-signature";

/** Characters of the header that are read, and signatures in it that are compared. */
const HEADER_CHARACTERS = 1_024;
const MOST_SIGNATURES = 4;

export interface SignatureHeader {
  /** As in the header: those bytes were signed. */
  readonly timestamp: string;
  readonly signatures: readonly Buffer[];
}

/** Undefined for what no secret can have signed. */
export function parseSignatureHeader(header: string): SignatureHeader | undefined {
  if (header.length > HEADER_CHARACTERS) return undefined;
  const parts = header.split(",").map((part) => part.trim());
  const timestamps = parts.filter((part) => part.startsWith("t=")).map((part) => part.slice(2));
  const [timestamp] = timestamps;
  if (timestamp === undefined || timestamps.length > 1 || !/^\d{1,12}$/.test(timestamp)) return undefined;
  const signatures = parts
    .filter((part) => /^v1=[0-9a-f]{64}$/.test(part))
    .slice(0, MOST_SIGNATURES)
    .map((part) => Buffer.from(part.slice(3), "hex"));
  return signatures.length === 0 ? undefined : { timestamp, signatures };
}
