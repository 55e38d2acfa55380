/**
 * The header of a signed callback: `x-provider-signature: t=<unix seconds>,v1=<hex>`. The gateway parses the header, so
 * that callbacks without a signature do not use up the places of valid ones. Only the providers service can check the
 * signature.
 */

/** The one header that adapters read. */
export const SIGNATURE_HEADER = "x-provider-signature";

/** The longest header, and the most signatures in it that are compared. */
const HEADER_CHARACTERS = 1_024;
const MOST_SIGNATURES = 4;

interface SignatureHeader {
  /** The text of the header, because the signature covers it. */
  readonly timestamp: string;
  readonly signatures: readonly Buffer[];
}

/** Undefined for a header without a well-formed signature. */
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
