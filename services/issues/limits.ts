/** Every limit of the issues' life cycle, with its reason. */
export const ISSUE_LIMITS = {
  /** Attempts to raise issues that people decide at the same moment: a person decides an issue only once. */
  raisePasses: 5,
  /** Earlier evidence that an undecided issue keeps, for a person to compare. The imports have all evidence. */
  priorEvidence: 8,
  /** How long the person who closed an issue can undo that: a person notices a mistake the same day or at the next shift. */
  undoMs: 24 * 3_600_000,
  /** How long one request closes the money issues of a filter, one after the other. Further requests close the rest. */
  closingMs: 3_000,
  /** After how long a person may decide again when a run or another decision kept the locks: most are done by then. */
  lockedRetryMs: 1_000,
  /** Comments of one issue: enough for a long conversation, and the issue with its comments still fits in one message. */
  comments: 100,
  /** Steps of one issue in an answer; the audit log has all steps. */
  steps: 100,
  /** Issues in one event on the bus: at a hundred bytes each, the event is far smaller than a message may be. */
  issuesPerEvent: 200,
  /** How long a scrape waits for the metrics of unresolved issues: half of Prometheus' time-out of 10 s. */
  summaryMs: 5_000,
} as const;
