/** An error whose message is one sentence for the person who ran the command. */
export class SetupError extends Error {
  name = "SetupError";
}
