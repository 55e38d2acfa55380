/** The first bytes of a stream before the rest of it is read. */
export interface Peeked {
  readonly head: Uint8Array;
  /** All bytes, the head included; read once. */
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** The head is the first piece: as long as the source makes it. */
export async function peeked(source: AsyncIterable<Uint8Array>): Promise<Peeked> {
  const iterator = source[Symbol.asyncIterator]();
  const first = await iterator.next();
  const head = first.done === true ? new Uint8Array() : first.value;
  return { head, bytes: wholeOf(head, iterator) };
}

async function* wholeOf(head: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncIterable<Uint8Array> {
  try {
    if (head.length > 0) yield head;
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}
