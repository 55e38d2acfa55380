/** Every wait and retry of the bus, in one place, each with its reason. Milliseconds unless the name says otherwise. */
export const BUS_LIMITS = {
  /** How long a starting process tries to reach the bus before it ends with an error: a server that starts at the same time is up by then. */
  firstConnectMs: 10_000,
  /** One attempt to connect; a server that needs longer counts as down. */
  dialMs: 3_000,
  /** The attempt that finds out why TLS does not come about: a server that refuses a certificate does so at once. */
  lastDialMs: 1_000,
  /** So many, where a reset hides the reason; about half of them show it. */
  lastDials: 4,
  /**
   * Pause between two attempts to connect to a server that does not answer, with a random part. So a process finds a restarted
   * server well within the 1.5 s after which replicas are stale, and no server gets more than four attempts a second for long.
   */
  redial: { firstMs: 100, longestMs: 500 },
  /** After a connection that lasted this long, the pauses begin again at `redial.firstMs`. */
  goodConnectionMs: 2_000,
  /** How long the end of a process waits for the server to confirm what was sent. */
  closeMs: 1_000,
  /** A half-open connection is noticed after `pingMs * (unansweredPings + 1)`; the client's own default is six minutes. */
  pingMs: 2_000,
  unansweredPings: 2,
  /** How often the clock is compared with the bus: crystals drift apart by a millisecond in this time at most. */
  clockMeasureMs: 10_000,
  /** How often a process checks whether its machine slept or its clock was set, and, until the first measurement, tries to measure. */
  clockCheckMs: 1_000,
  /** A larger change between this machine's two clocks means that its clock was set or it slept: they drift less between two measurements. */
  clockMovedMs: 100,
  /** An answer within this time is good enough; otherwise the best of so many counts. */
  clockSampleMs: 20,
  clockSamples: 5,
  /** An answer that takes longer is not used: its error could be half of this. */
  clockAnswerMs: 1_000,
  /** A clock that is more than this ahead or behind is reported as wrong. A machine with a time service keeps within milliseconds. */
  wrongClockMs: 1_000,
  /** JetStream management calls at start: creating a stream on a busy disk may take a while. */
  manageMs: 10_000,
  /** How long `migrate` repeats one request that a cluster without a leader refuses: three elections of the slowest kind. */
  ensureMs: 60_000,
  /** One request to JetStream at a start: an answer comes within milliseconds or not at all. */
  quorumAnswerMs: 2_000,
  /**
   * How often a process checks that its server reaches a majority, and how long a question to it may take: two questions and a
   * dial fit into the 3 s in which a process leaves a server without one.
   */
  quorumAskMs: 500,
  quorumQuestions: 2,
  /** After an answer of a majority no question is asked for this long. */
  quorumFreshMs: 750,
  /** First and longest time between leaving two servers, while none reaches a majority: a new connection costs a moment. */
  leaveAgain: { firstMs: 3_000, longestMs: 30_000 },
  /**
   * By how many pulses the bus may be ahead of a database that is taken for current. The relay raises the pulse every five
   * seconds: a fail-over to an asynchronous stand-by may lose some, and every backup is older than a minute.
   */
  pulsesAhead: 12,
  /** How often a process that waits for a quorum logs it. */
  quorumLogMs: 60_000,
  /** How long a starting process waits for a cluster that elects; an election takes 4 to 9 s. */
  checkStreamsMs: 15_000,
  /** Pause between two attempts to prepare, check or claim the bus while its cluster elects. */
  ensurePauseMs: 250,
  /**
   * Attempts to write the installation's id. One that fails: another program has written it at the same moment, or the
   * server does not know yet which of its cluster stores the new bucket.
   */
  claimAttempts: 20,
  /** Pause before a process reads again to which installation the bus belongs, while JetStream comes up behind a connection that is back. */
  ownerPauseMs: 500,

  /** How long `call` waits unless its caller says otherwise: longer than any single database statement may take. */
  callMs: 5_000,
  /**
   * A process sends a progress message for a request after this long, and again after each such interval. Most requests are
   * answered before the first one, and cost no extra message.
   */
  workingAfterMs: 150,
  /** A caller that receives neither a progress message nor the answer for this long asks another process: two messages in a row are missing then. */
  silenceMs: 400,
  /** How long a caller waits for a progress message of the process that has claimed its request. */
  claimedSilenceMs: 1_000,
  /** Processes that one request is sent to after the first: it bounds the extra work for services that are all slow. */
  repetitions: 2,
  /** How long a process that ends finishes requests: their callers wait no longer (`callMs`). */
  finishMs: 5_000,
  /** When a caller may repeat a request that was refused for lack of disk space: a person has to free space first. */
  storageRetryMs: 10_000,
  /** Requests one process works on at once per operation; more are refused as busy rather than queued without bound. */
  requestsInFlight: 256,

  /** The pause before a flush is requested again while no relay answers: a relay that takes over answers within its first turn. */
  flushPauseMs: 50,

  /** How long `askStation` keeps trying, unless its caller says otherwise. */
  askMs: 4_000,
  /**
   * When a request without an answer is sent again: it was lost with its host, or with a server that was stopped. A host that is
   * succeeded after 2.5 s has its successor asked within the 3 s in which a stalled host's stations answer again.
   */
  askAgainMs: 400,
  /** First and longest pause between attempts while a partition has no owner (a planned hand-over takes less than 500 ms). */
  askPauseMs: 20,
  askLongestPauseMs: 100,

  /** A feed without a message or idle heartbeat for this long is requested again, well within the 1.5 s after which a replica is stale. */
  feedSilenceMs: 1_000,
  /**
   * A feed of a replicated stream that was silent for this long reads from any copy of it until its consumer answers again:
   * two heartbeats are missing then, and 0.9 s are left in which the replica is not stale yet.
   */
  feedDirectMs: 600,
  /** A replicated stream counts as having lost its end after its leader has reported it this often, `feedRetryMs` apart. */
  feedLossConfirmations: 5,
  /** One such read: a copy answers within milliseconds, or the feed asks another copy at the next turn. */
  feedReadMs: 500,
  /**
   * Such a read without any answer after this long asks again, so five times at most. With one of three servers stalled, each
   * request has one chance in three to reach its copy: two lost reads in a row of one request each would make a replica stale.
   */
  feedReadAgainMs: 100,
  /** Pause between two such reads: a beat that is stored twice a second must be read well before the replica is stale. */
  feedReadPauseMs: 100,
  /** Messages of one such read: more than a busy log stores between two reads. */
  feedReadMessages: 1_000,
  /** How often the server proves that an idle feed is alive. */
  feedHeartbeatMs: 250,
  /** How long after a process died the server deletes its consumer. */
  feedForgottenMs: 30_000,
  /** Pause before a feed that could not be started is tried again. */
  feedRetryMs: 200,

  /**
   * The longest time between two beats of a reader of a replicated stream: two may be lost or late before the replica is
   * stale after 1.5 s. A beat costs the cluster one small append.
   */
  beatMs: 500,
  /**
   * A reader of a bucket that the relay writes asks the relay how far it has delivered when its newest beat is this old, and
   * then this often: 0.9 s are left for the answer. While the bucket has a leader, a beat comes back sooner.
   */
  deliveredFromMs: 600,
  deliveredAskMs: 200,
  /** One such request; within it, another process answers in place of one that does not. */
  deliveredAnswerMs: 1_000,
  /** How long such answers count after the newest beat: several elections. The relay searches twice this far back. */
  deliveredCountsMs: 30_000,
  /** Subjects of beats in a stream: two of a hundred gateways rarely share one, and few messages stay. */
  beatSubjects: 256,
  /** A chunk of a file: what object stores have by convention, an eighth of the longest message. */
  fileChunkBytes: 128 * 1_024,
  /** How long one chunk may take to be stored, and how often it is sent while a cluster elects. */
  fileChunkMs: 10_000,
  fileChunkTries: 3,
  /** Chunks that a reader has at once: a megabyte for each import under way. */
  fileReadChunks: 8,
  fileReadMs: 5_000,
  /** Such a read without any answer after this long asks again: a server that is stalled or cut off never answers. */
  fileReadAgainMs: 500,
  /** A chunk is lost when the leader reports it so often, with this pause between. */
  fileReadAttempts: 3,
  fileReadPauseMs: 300,
} as const;
