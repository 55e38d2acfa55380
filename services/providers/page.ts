/** As many of these as fit one bus message, one at least: a row may carry long evidence. */
export function firstPage<T>(rows: readonly T[], maxBytes: number): T[] {
  let bytes = 0;
  const end = rows.findIndex((row, index) => {
    bytes += Buffer.byteLength(JSON.stringify(row));
    return index > 0 && bytes > maxBytes;
  });
  return end === -1 ? [...rows] : rows.slice(0, end);
}
