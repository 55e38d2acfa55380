/** Reads a commit from the log. What is no commit is told apart from one that this program is too old for. */
import { type Commit, decodeCommit, NewerMachineError } from "../../../machines/station/commit.ts";
import { parseStationId } from "../../bus/subjects.ts";

/**
 * The commit of a message of a log, or undefined when the message is none: it is then left out, and shows as a
 * gap. Throws {@link NewerMachineError}: a newer program's commit is not guessed at, the copy waits for its upgrade.
 */
export function readCommit(message: { readonly subject: string; string(): string }): Commit | undefined {
  let commit: Commit;
  try {
    commit = decodeCommit(message.string());
  } catch (error) {
    if (error instanceof NewerMachineError) throw error;
    return undefined;
  }
  const isCommit =
    Number.isSafeInteger(commit?.version) &&
    commit.version > 0 &&
    Array.isArray(commit.events) &&
    commit.state?.stationId === parseStationId(message.subject);
  return isCommit ? commit : undefined;
}
