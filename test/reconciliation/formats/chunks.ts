/** Text and bytes in chunks, for the parsers. */

export async function* oneChunk<Chunk>(chunk: Chunk): AsyncIterable<Chunk> {
  yield chunk;
}

/** Divides the whole at these places, each modulo its length. */
export async function* dividedAt<Chunk extends string | Uint8Array>(
  whole: Chunk,
  places: readonly number[],
): AsyncIterable<Chunk> {
  const cuts = [...new Set([0, ...places.map((place) => place % (whole.length + 1)), whole.length])];
  cuts.sort((first, second) => first - second);
  for (const [index, cut] of cuts.entries()) {
    if (index > 0) yield whole.slice(cuts[index - 1], cut) as Chunk;
  }
}

export async function collected<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}
