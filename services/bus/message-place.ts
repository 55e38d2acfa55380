/** Where a message is in its stream and in what its consumer has delivered. */
interface Place {
  readonly sequence: number;
  readonly delivered: number;
  readonly storedAtMs: number;
  readonly pending: number;
}

/**
 * A message's place, from its reply subject: `$JS.ACK.<stream>.<consumer>.<tries>.<sequence>.<delivered>.<nanoseconds>.<pending>`,
 * with `<domain>.<account>` before the stream and one more token at the end on newer servers.
 */
export function parsePlace(reply: string | undefined): Place | undefined {
  if (reply === undefined || !reply.startsWith("$JS.ACK.")) return undefined;
  const tokens = reply.split(".");
  const at = tokens.length === 9 ? 5 : 7;
  return {
    sequence: Number(tokens[at]),
    delivered: Number(tokens[at + 1]),
    storedAtMs: Number(tokens[at + 2]) / 1e6,
    pending: Number(tokens[at + 3]),
  };
}
