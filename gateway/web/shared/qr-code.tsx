/** A QR code that every phone can read: always black on white, with the quiet zone of the standard. */
import { encode } from "uqr";

/** ISO/IEC 18004: four modules of white on each side. */
const QUIET_MODULES = 4;

interface QrCodeProps {
  readonly content: string;
  /** What the code is for. Screen readers read this. */
  readonly label: string;
}

/** Null where the content does not fit into a QR code. */
export function QrCode({ content, label }: QrCodeProps) {
  const code = encoded(content);
  if (code === null) return null;
  const { size, path } = code;
  return (
    <svg class="qr-code" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label} shape-rendering="crispEdges">
      <path fill="#ffffff" d={`M0 0h${size}v${size}H0z`} />
      <path fill="#000000" d={path} />
    </svg>
  );
}

function encoded(content: string): { readonly size: number; readonly path: string } | null {
  try {
    // Level M: a phone reads the code although 15 % of it is damaged. A higher level would make the modules smaller.
    const { size, data } = encode(content, { ecc: "M", boostEcc: false, border: QUIET_MODULES });
    return { size, path: data.map(rowPath).join("") };
  } catch {
    return null;
  }
}

/** One rectangle for each run of black modules in the row. */
function rowPath(row: readonly boolean[], y: number): string {
  let path = "";
  for (let x = 0; x < row.length; x += 1) {
    const from = x;
    while (row[x] === true) x += 1;
    if (x > from) path += `M${from} ${y}h${x - from}v1H${from}z`;
  }
  return path;
}
