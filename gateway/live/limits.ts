/** The bounds of the live sockets, each with its reason. */
export const LIVE_LIMITS = {
  /** Sockets of one session: a cashier's screens and the tabs that were forgotten; more is a page that loops. */
  perSession: 8,
  /** Sockets of one gateway: about 10 KB each with the buffers of the kernel and of the server. */
  inAll: 10_000,
  /** How often sessions, freshness and deadlines are looked at; each must show within a second and a half. */
  lookMs: 200,
  /**
   * Silence after which a client counts as gone. It is pinged before, so one that reads is never silent; one that has
   * stopped to read is, because what it does not read it does not answer. Whole seconds; the server knows no others.
   */
  idleSeconds: 24,
  /**
   * How long a client may take to answer the ping behind a message. One that sends frames without masks, which the server
   * does not notice, answers none that can be recognised.
   */
  pongMs: 24_000,
  /** A client has nothing to say; this is room for a control frame and the beginning of a mistake. */
  incomingBytes: 1_024,
  /** The newest state is a few KB; a client that has more than this ahead of it has been sent something wrong. */
  backlogBytes: 256 * 1_024,
} as const;

/** Why a socket is ended: the code of the close frame. From 4000 on they are ours (RFC 6455, 7.4.2). */
export const CLOSE_CODES = {
  goingAway: 1001,
  nothingExpected: 1008,
  sessionEnded: 4401,
  stationGone: 4404,
} as const;
