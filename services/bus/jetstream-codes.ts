/** JetStream's codes (`err_code`) that are an answer and no failure. */

/** The condition of a write does not hold: the subject's last message has another sequence than expected. */
export const WRONG_LAST_SEQUENCE = 10_071;
/** A query finds no message. */
export const NO_MESSAGE = 10_037;
