/** The beginning of each file that this page has sent, for the column names: the service does not return them. */
const heads: Record<number, string> = {};

/** The header is in the first kilobytes, so the page does not read the rest of a large file. */
const HEAD_BYTES = 16 * 1_024;

export function rememberHead(importId: number, file: File): Promise<void> {
  return new Promise((resolve) => {
    const reader = new FileReader();
    reader.addEventListener("loadend", () => {
      if (typeof reader.result === "string") heads[importId] = reader.result;
      resolve();
    });
    // The reader assumes UTF-8. When a file has another encoding, a person may have to type a column name.
    reader.readAsText(file.slice(0, HEAD_BYTES));
  });
}

/** Empty for a file that was not sent during this visit: a person then types the column names. */
export const headOf = (importId: number): string => heads[importId] ?? "";
