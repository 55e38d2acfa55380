/** The beginning of each file that this page has sent, for the names of its columns. The service shows none before a mapping. */
const heads: Record<number, string> = {};

/** A header is in the first kilobytes; the rest of a large file is not read. */
const HEAD_BYTES = 16 * 1_024;

export function rememberHead(importId: number, file: File): Promise<void> {
  return new Promise((resolve) => {
    const reader = new FileReader();
    reader.addEventListener("loadend", () => {
      if (typeof reader.result === "string") heads[importId] = reader.result;
      resolve();
    });
    // Letters that this encoding does not have look wrong, and then the name is typed.
    reader.readAsText(file.slice(0, HEAD_BYTES));
  });
}

/** Empty for a file that was sent before this visit: a person then types the names of its columns. */
export const headOf = (importId: number): string => heads[importId] ?? "";
