/** Removing what is old, a bounded number of rows at a time, so that no statement holds locks for long. Returns how many. */
export async function removeInBatches(rowsPerBatch: number, remove: () => Promise<number>): Promise<number> {
  let total = 0;
  for (;;) {
    const removed = await remove();
    total += removed;
    if (removed < rowsPerBatch) return total;
  }
}
