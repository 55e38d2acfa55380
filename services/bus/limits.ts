/** Every wait and retry of the bus, in one place, each with its reason. Milliseconds unless the name says otherwise. */
export const BUS_LIMITS = {
  /** How long a starting process tries to reach the bus before it gives up with a sentence: a server that starts beside it is up by then. */
  firstConnectMs: 10_000,
  /** One attempt to connect; a server that needs longer is as good as down. */
  dialMs: 3_000,
  /**
   * Pause between two dials of a server that does not answer, with chance: a restarted one is found well within the 1.5 s
   * after which replicas are stale, and none is dialled more than four times a second for long.
   */
  redial: { firstMs: 100, longestMs: 500 },
  /** A connection that lasted this long was a good one: the pauses begin again. */
  goodConnectionMs: 2_000,
  /** How long the end of a process waits for the server to confirm what was sent. */
  closeMs: 1_000,
  /** A half-open connection is noticed after `pingMs * (unansweredPings + 1)`; the client's own default is six minutes. */
  pingMs: 2_000,
  unansweredPings: 2,
  /** How often the clock is compared with the bus: crystals drift apart by a millisecond in this time at most. */
  clockMeasureMs: 10_000,
  /** How often a process checks whether its machine slept or its clock was set, and, until it has measured, tries to. */
  clockCheckMs: 1_000,
  /** This machine's two clocks have moved against each other by more than they drift between two measurements. */
  clockMovedMs: 100,
  /** An answer within this time is good enough; otherwise the best of so many counts. */
  clockSampleMs: 20,
  clockSamples: 5,
  /** An answer that takes longer says nothing of use: its error could be half of this. */
  clockAnswerMs: 1_000,
  /** A clock that is more than this ahead or behind is reported as wrong. A machine with a time service keeps within milliseconds. */
  wrongClockMs: 1_000,
  /** JetStream management calls at start: creating a stream on a busy disk may take a while. */
  manageMs: 10_000,
  /** How long `migrate` repeats one request that a cluster without a leader refuses: three elections of the slowest kind. */
  ensureMs: 60_000,
  /** One question to JetStream at a start: an answer comes in milliseconds, or none. */
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
  /** How often a process that waits for a quorum says so. */
  quorumSaidMs: 60_000,
  /** How long a starting process waits for a cluster that elects; an election takes 4 to 9 s. */
  checkStreamsMs: 15_000,
  /** Pause between two attempts of either. */
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
   * A process says that it works on a request after this long, and again each time as much has passed. Most requests are
   * answered long before, and cost no message more.
   */
  workingAfterMs: 150,
  /** A caller that hears neither that nor the answer for this long asks another process: two messages in a row are lost then. */
  silenceMs: 400,
  /** How long a caller waits for a word of the process that has claimed its request: one that is alive says so in time. */
  claimedSilenceMs: 1_000,
  /** Processes that one request is sent to after the first: services that lag together get no more work than this from it. */
  repetitions: 2,
  /** How long a process that ends finishes requests: their callers wait no longer (`callMs`). */
  finishMs: 5_000,
  /** When a refusal for want of disk space may be tried again: a person has to free space first. */
  storageRetryMs: 10_000,
  /** Requests one process works on at once per operation; more are refused as busy rather than queued without bound. */
  requestsInFlight: 256,

  /** The pause before a flush is asked for again while no relay listens: one that takes over listens within its first turn. */
  flushPauseMs: 50,

  /** How long `askStation` keeps trying, unless its caller says otherwise. */
  askMs: 4_000,
  /** One attempt of `askStation`: a request that a dying host took with it is asked again while there is still time. */
  askAttemptMs: 1_500,
  /** First and longest pause between attempts while a partition has no owner (a planned hand-over takes less than 500 ms). */
  askPauseMs: 20,
  askLongestPauseMs: 100,

  /** A feed without a message or idle heartbeat for this long is asked for anew; well within the 1.5 s after which a replica is stale. */
  feedSilenceMs: 1_000,
  /**
   * A feed of a replicated stream that was silent for this long reads from any copy of it until its consumer answers again:
   * two heartbeats are missing then, and 0.9 s are left in which the replica is not stale yet.
   */
  feedDirectMs: 600,
  /** A replicated stream counts as having lost its end when its leader says so this often, `feedRetryMs` apart. */
  feedLossConfirmations: 5,
  /** One such read: a copy answers in milliseconds, or another one is asked at the next turn. */
  feedReadMs: 500,
  /** Pause between two such reads: a beat that is stored twice a second must be read well before the replica is stale. */
  feedReadPauseMs: 100,
  /** Messages of one such read: more than a busy log stores between two reads. */
  feedReadMessages: 1_000,
  /** How often the server proves that an idle feed is alive. */
  feedHeartbeatMs: 250,
  /** The server forgets the consumer of a process that died. */
  feedForgottenMs: 30_000,
  /** Pause before a feed that could not be started is tried again. */
  feedRetryMs: 200,

  /**
   * The longest time between two beats of a reader of a replicated stream: two may be lost or late before the replica is
   * stale after 1.5 s. A beat costs the cluster one small append.
   */
  beatMs: 500,
  /**
   * A reader of a bucket that the relay writes asks for the other proof when its newest beat is this old, and then this often:
   * 0.9 s are left for the answer. While the bucket has a leader a beat is back sooner.
   */
  deliveredFromMs: 600,
  deliveredAskMs: 200,
  /** One such question; a process that does not answer is replaced by another one within it. */
  deliveredAnswerMs: 1_000,
  /** How long such proofs count after the newest beat: several elections. The relay searches twice this far back. */
  deliveredCountsMs: 30_000,
  /** Subjects of beats in a stream: two of a hundred gateways rarely share one, and the messages that stay are few. */
  beatSubjects: 256,
  /** A chunk of a file: what object stores have by convention, an eighth of the longest message. */
  fileChunkBytes: 128 * 1_024,
  /** How long one chunk may take to be stored, and how often it is sent while a cluster elects. */
  fileChunkMs: 10_000,
  fileChunkTries: 3,
  /** Chunks that a reader has at once: a megabyte for each import under way. */
  fileReadChunks: 8,
  fileReadMs: 5_000,
  /** A copy that lags has the next chunk soon; after so many attempts it is lost. */
  fileReadAttempts: 50,
  fileReadPauseMs: 100,
} as const;
