/**
 * The bounds of connections and of what waits to be sent on them, each with its reason. Two of them are settings:
 * `MAX_CONNECTIONS` and `MAX_CONNECTIONS_PER_ADDRESS`.
 */

const KIB = 1_024;
const MIB = 1_024 * KIB;

export const CONNECTION_LIMITS = {
  /**
   * Files that the process keeps for everything but its clients: the bus, the log, the metrics port, TLS files, the
   * engine's own (about 60 in all). Where the limit of open files is small, half of it stays free instead.
   */
  otherFiles: 256,
  /** Connections at once where the limit of open files allows more: about 10 KB each, so 1 GB, and one thread serves them. */
  connections: 100_000,
  /** Connections of one address at once: a large restaurant's devices behind one address are some hundreds. */
  connectionsPerAddress: 1_024,
  /** No address may hold more than this share of all connections, however the two settings are chosen. */
  shareOfOneAddress: 0.5,
  /** From this share of all connections on, an answer to a caller that is not known ends its connection. */
  crowdedShare: 0.75,
  /** The same for one address and its share of what it may hold. */
  crowdedShareOfAddress: 0.5,
  /** Connections without a request that are remembered of one address, so that some can make room for a new one. */
  unusedPerAddress: 128,
  /**
   * How often the connections of each address are counted again at most. The kernel writes a line for each connection of
   * the machine: 10 ms of its time for 20,000.
   */
  recountMs: 2_000,
  /** Addresses that are remembered without a connection until the next count: about 1 MB. */
  unopenedAddresses: 10_000,
  /** At most one line in the log per this time says that connections are refused; the metrics have each. */
  logMs: 60_000,
  /** Bytes of one connection's answer that wait for its client: more than a page of a list has (`BOUNDS.listedBytes`). */
  unsentBytesPerConnection: 256 * KIB,
  /** The same of all connections: 256 of the largest, or 60,000 answers of 1 KB. A file's bytes exist once and do not count. */
  unsentBytes: 64 * MIB,
  /** Answers that wait at once, whatever their size: about 1 KB each beside their bytes. */
  unsentAnswers: 16_384,
  /** A client that takes nothing for this time is not reading. */
  stalledMs: 5_000,
  /** A client that takes a little now and then: after this time its answer is abandoned. A page has arrived at 10 KB/s. */
  unsentMs: 30_000,
  /** How often answers that wait are checked for those two. */
  unsentCheckMs: 250,
  /**
   * An answer of this size fits into the send buffer of a connection on which nothing waits, so that its connection can be
   * closed right behind it; errors are some hundred bytes.
   */
  closingAnswerBytes: 8 * KIB,
  /**
   * The server does not report what waits of an answer without a body. A device that gets 304 this often in a row (250 KB
   * of heads) gets it with `Connection: close`, and every so often another caller whose answers have no body.
   */
  unchangedInARow: 1_024,
  bodilessInARow: 128,
} as const;
