/** Every limit of the issues' life cycle, with its reason. */
export const ISSUE_LIMITS = {
  /** How often issues that people decide at the same moment are looked at again: a person decides one of them once. */
  raisePasses: 5,
  /** Earlier evidence that an undecided issue keeps: what a person compares; the imports have all of it. */
  priorEvidence: 8,
  /** How long a closing can be undone by the person who made it: an error is seen the same day or at the next shift. */
  undoMs: 24 * 3_600_000,
  /** How long one request closes issues of money by a filter, one after the other; what is left is asked for again. */
  closingMs: 3_000,
  /** Comments of one issue: a long conversation, and the issue with them is one message. */
  comments: 100,
  /** Steps of one issue in an answer; the audit log has all. */
  steps: 100,
  /** Issues in one event on the bus: a hundred bytes each, far below a message's bound. */
  issuesPerEvent: 200,
  /** How often the metrics of unresolved issues are read: one index scan. */
  summaryMs: 15_000,
} as const;
