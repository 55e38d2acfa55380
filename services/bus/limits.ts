/** Every wait and retry of the bus, with its reason. Times are in milliseconds unless the name has another unit. */
export const BUS_LIMITS = {
  /**
   * How long a starting process tries to reach the bus before it ends with an error. A server that starts at the same
   * time is up by then.
   */
  firstConnectMs: 10_000,
  /** One attempt to connect; a server that needs longer counts as down. */
  dialMs: 3_000,
  /** One attempt that finds out why the TLS handshake fails: a server that refuses a certificate does so at once. */
  lastDialMs: 1_000,
  /**
   * How many such attempts follow one another while a connection reset hides the reason. About half of them show it.
   */
  lastDials: 4,
  /** A connection that is lost for longer than a restart takes: the process then logs why TLS fails. */
  explainOutageMs: 5_000,
  /**
   * Pause between two attempts to connect to a server that does not answer, with a random part. A process finds a
   * restarted server before its replicas are stale, which takes 1.5 s. After the first moments a server gets at most
   * four attempts a second from one process.
   */
  redial: { firstMs: 100, longestMs: 500 },
  /** After a connection that lasted this long, the pauses begin again at `redial.firstMs`. */
  goodConnectionMs: 2_000,
  /** How long a process that ends waits until the server confirms what the process sent. */
  closeMs: 1_000,
  /**
   * The client notices a half-open connection after `pingMs * (unansweredPings + 1)`. The client's default is six
   * minutes.
   */
  pingMs: 2_000,
  unansweredPings: 2,
  /**
   * How often a process compares its clock with the bus: in this time two clocks drift apart by a millisecond at most.
   */
  clockMeasureMs: 10_000,
  /** How often a process checks whether its machine slept or its clock was set, and, until the first measurement, tries to measure. */
  clockCheckMs: 1_000,
  /**
   * A larger change between this machine's two clocks means that its clock was set, or that it slept. Between two
   * measurements they drift apart by less.
   */
  clockMovedMs: 100,
  /** An answer within this time is good enough. Otherwise the process uses the fastest of `clockSamples` answers. */
  clockSampleMs: 20,
  clockSamples: 5,
  /** The process does not use an answer that takes longer: its error could be half of this. */
  clockAnswerMs: 1_000,
  /**
   * A process reports a clock that is ahead or behind by more than this as wrong. With a time service a machine's clock
   * is right to milliseconds.
   */
  wrongClockMs: 1_000,
  /** JetStream management calls at start: creating a stream on a busy disk may take a while. */
  manageMs: 10_000,
  /**
   * How long `migrate` repeats one request that a cluster without a leader refuses: the time of three slow elections.
   */
  ensureMs: 60_000,
  /**
   * The time-out of one request to JetStream at a start: an answer comes within milliseconds or not at all. A process leaves
   * a server without a majority within 3 s: two such requests and a new connection fit into that time.
   */
  quorumAnswerMs: 1_000,
  /**
   * How long a process waits for a majority's answer to each of two questions. With the two limits below, it leaves a server
   * without a majority 2 s after the cut at most.
   */
  quorumAskMs: 500,
  quorumQuestions: 2,
  /**
   * After an answer of a majority the process asks nothing for this long. A question costs the cluster one durable append: with
   * 500 ms and 18 processes, the two cores of the trial were a tenth busier.
   */
  quorumFreshMs: 750,
  /** How often a process checks whether a question is due. */
  quorumCheckMs: 250,
  /** The same for a single server, which a process cannot leave: often enough for `/readyz` and the alert of `bus_up`. */
  singleFreshMs: 5_000,
  /** How long a single server has for each of two answers: its disk may be slow for a while. */
  singleAnswerMs: 2_000,
  /**
   * While no server reaches a majority: the first and the longest time between two changes of server. Requests fail
   * during each change.
   */
  leaveAgain: { firstMs: 3_000, longestMs: 30_000 },
  /**
   * How often a process reports to all others that its server can be reached, and how many processes of one server do so:
   * each message goes to all processes. When that one stalls or ends, another one reports within two of these intervals.
   */
  processHereMs: 500,
  processesHere: 1,
  /** A process checks the links when the reports of a server stop for this long: three of them are missing. */
  serverMissedMs: 1_500,
  /** A process checks the links at most this often: a check makes a connection to each server. The relay keeps its own. */
  checkLinksMs: 2_000,
  /** A cut counts for this long when no check can prove or disprove it, because a server does not answer: several checks. */
  cutUnprovedMs: 10_000,
  /** How long such a check waits for its messages, and how often it sends them: a new subscription is not known at once. */
  linksMs: 1_000,
  linksAgainMs: 50,
  /**
   * By how many pulses the bus may be ahead of a database that counts as current. The relay raises the pulse every five
   * seconds. A fail-over to an asynchronous stand-by may lose some pulses, and every backup is older than a minute.
   */
  pulsesAhead: 12,
  /** How often a process that waits for a quorum logs it. */
  quorumLogMs: 60_000,
  /** How long a starting process waits for a cluster that elects; an election takes 4 to 9 s. */
  checkStreamsMs: 15_000,
  /** Pause between two attempts to prepare, check or claim the bus while its cluster elects. */
  ensurePauseMs: 250,
  /**
   * Attempts to write the installation's id. An attempt fails when another program has written the id at the same
   * moment, or when the server does not know yet which servers of its cluster store the new bucket.
   */
  claimAttempts: 20,
  /**
   * After a reconnect, while JetStream is not ready: the pause before a process reads again to which installation the
   * bus belongs.
   */
  ownerPauseMs: 500,

  /** How long `call` waits by default: longer than any single database statement may take. */
  callMs: 5_000,
  /**
   * A process sends a progress message for a request after this long, and then at this interval. It answers most
   * requests before the first progress message, so they cost no extra message.
   */
  workingAfterMs: 150,
  /**
   * A caller that receives neither a progress message nor the answer for this long asks another process: two progress
   * messages in a row are missing then.
   */
  silenceMs: 400,
  /** How long a caller waits for a progress message of the process that has claimed its request. */
  claimedSilenceMs: 1_000,
  /**
   * How many further processes may get the same request. This bounds the extra work when all processes of a service are
   * slow.
   */
  repetitions: 2,
  /** How long a process that ends finishes requests: their callers wait no longer (`callMs`). */
  finishMs: 5_000,
  /**
   * After how long a caller may repeat a request that a service refused for lack of disk space: a person has to free
   * space first.
   */
  storageRetryMs: 10_000,
  /**
   * Requests of one operation that a process works on at once. It refuses more as `busy`, and does not queue them
   * without bound.
   */
  requestsInFlight: 256,

  /**
   * The pause before a process requests a flush again, while no relay answers. A relay that takes over answers within
   * its first turn.
   */
  flushPauseMs: 50,

  /** How long `askStation` tries by default. */
  askMs: 4_000,
  /**
   * After how long `askStation` sends a request without an answer again: the request was lost with its host or with a
   * server. A successor takes over a stalled host's stations after 2.5 s and gets the request before 3 s are over.
   */
  askAgainMs: 400,
  /** The same when the host has closed the partition: most commands that it has received are answered by then. */
  askAgainClosedMs: 50,
  /** First and longest pause between attempts while a partition has no owner (a planned hand-over takes less than 500 ms). */
  askPauseMs: 20,
  askLongestPauseMs: 100,

  /**
   * A feed that receives neither a message nor an idle heartbeat for this long creates a new consumer. A replica is
   * stale only after 1.5 s.
   */
  feedSilenceMs: 1_000,
  /**
   * When the consumer of a replicated stream is silent for this long, the feed reads from any copy until the consumer
   * sends again. Two heartbeats are missing then, and the replica becomes stale 0.9 s later.
   */
  feedDirectMs: 600,
  /**
   * How often a feed checks whether its consumer is silent: at a planned stop of a server an answer waits for the direct
   * read, and must come within a second.
   */
  feedWatchMs: 100,
  /**
   * A replicated stream counts as having lost its end after its leader has reported a shorter stream this often,
   * `feedRetryMs` apart.
   */
  feedLossConfirmations: 5,
  /**
   * The time-out of one such direct read: a copy answers within milliseconds, or the feed asks another copy at the next
   * turn.
   */
  feedReadMs: 500,
  /**
   * A direct read without an answer sends its request again at this interval, so five times at most. When one of three
   * servers is stalled, each request reaches the stalled copy with a chance of one in three. With one request per read,
   * two lost reads in a row would make a replica stale.
   */
  feedReadAgainMs: 100,
  /**
   * Callers that need a proof within this time share one: each proof costs a write to the stream, and any client may send
   * an unknown credential.
   */
  shareProofMs: 20,
  /** How long such a proof may take. It comes back within milliseconds, and after 1.5 s a replica is stale. */
  proofMs: 1_500,
  /**
   * How many of the callers that share a proof continue in one turn: each may write an answer, and a flood of unknown
   * credentials must not hold up known devices. 64 answers take about two milliseconds.
   */
  provedPerTurn: 64,
  /** Pause between two direct reads: the feed must read the beats, two a second, well before the replica is stale. */
  feedReadPauseMs: 100,
  /** Messages of one direct read: more than a busy log stores between two reads. */
  feedReadMessages: 1_000,
  /** How often a server of a cluster proves that an idle feed is alive: more than twice in `feedDirectMs`. */
  feedHeartbeatMs: 250,
  /** The same for a single server, which needs no direct read: twice in `feedSilenceMs`. */
  feedHeartbeatSingleMs: 500,
  /** How long after a process died the server deletes its consumer. */
  feedForgottenMs: 30_000,
  /** Pause before a feed that could not be started is tried again. */
  feedRetryMs: 200,

  /**
   * The longest time between two beats of a reader of a replicated stream. The replica is stale after 1.5 s, so two
   * beats may be lost or late. A beat costs the cluster one small append.
   */
  beatMs: 500,
  /**
   * Some buckets are written by the relay alone. When the newest beat of their reader is this old, the reader asks the
   * relay how far it has delivered, every `deliveredAskMs`. 0.9 s are left for the answer. While the bucket has a
   * leader, a beat comes back sooner.
   */
  deliveredFromMs: 600,
  deliveredAskMs: 200,
  /** The time-out of one such request: long enough that another process answers when the first one does not. */
  deliveredAnswerMs: 1_000,
  /**
   * How long such answers count after the newest beat: the time of several elections. The relay searches twice this far
   * back.
   */
  deliveredCountsMs: 30_000,
  /** Subjects of beats in a stream: two of a hundred gateways rarely share one, and few messages stay. */
  beatSubjects: 256,
  /** The size of a file's chunks: the convention of NATS object stores, and an eighth of the longest message. */
  fileChunkBytes: 128 * 1_024,
  /**
   * How long the bus may take to store one chunk: two elections. A chunk without an acknowledgement is sent again after
   * `fileChunkAgainMs`, because its leader may have ended: a busy disk stores one in less.
   */
  fileChunkMs: 25_000,
  fileChunkAgainMs: 2_000,
  fileChunkPauseMs: 250,
  /** Chunks that a reader holds in memory at once: a megabyte for each import under way. */
  fileReadChunks: 8,
  fileReadMs: 5_000,
  /** A read without any answer after this long asks again: a server that is stalled or cut off never answers. */
  fileReadAgainMs: 500,
  /** A chunk counts as lost after the leader has reported it missing this often, `fileReadPauseMs` apart. */
  fileReadAttempts: 3,
  fileReadPauseMs: 300,
} as const;
