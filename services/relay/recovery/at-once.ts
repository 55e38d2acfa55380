/** Does the work for each thing, up to `most` at once, in their order. Rejects with the first error, once all have ended. */
export async function atOnce<T>(things: readonly T[], most: number, work: (thing: T) => Promise<void>): Promise<void> {
  const left = things.values();
  const workOff = async (): Promise<void> => {
    for (const thing of left) await work(thing);
  };
  const ends = await Promise.allSettled(Array.from({ length: Math.min(most, things.length) }, workOff));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}
