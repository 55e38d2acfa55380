/** Why an attempt came to nothing, as its record names it. */
import type { AttemptError } from "../../bus/messages/webhook-deliveries.ts";

/** The cause is for a debugger's eyes; nothing of it goes into a record, because it may tell of our network. */
export class AttemptFailure extends Error {
  readonly error: AttemptError;

  constructor(error: AttemptError, options?: ErrorOptions) {
    super(`The attempt failed: ${error}.`, options);
    this.name = "AttemptFailure";
    this.error = error;
  }
}
