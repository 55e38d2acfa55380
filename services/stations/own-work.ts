/** The host's own commands, a bounded number at a time: a take-over may find tens of thousands of them due at once. */
import { STATION_LIMITS } from "./limits.ts";
import type { Mailboxes } from "./mailboxes.ts";
import { isFailure, type StationAnswer, SYSTEM, type Work } from "./work.ts";

interface Own {
  readonly stationId: number;
  readonly commandId: string;
  readonly command: Work["command"];
  readonly isAboutUnknown?: boolean;
  /** True when the partition was given up meanwhile: its next owner finds out by itself what is due. */
  readonly isVoid: () => boolean;
  /** Called with whether the command was done; a failure is retried by whoever asked. */
  readonly done: (answer: Exclude<StationAnswer, { failure: string }> | undefined) => void;
}

export class OwnWork {
  readonly #mailboxes: Mailboxes;
  /** As long as there are stations and devices with something due; each asks once and waits for `done`. */
  #waiting: Own[] = [];
  #next = 0;
  #underWay = 0;

  constructor(mailboxes: Mailboxes) {
    this.#mailboxes = mailboxes;
  }

  submit(own: Own): void {
    this.#waiting.push(own);
    this.#advance();
  }

  #advance(): void {
    while (this.#underWay < STATION_LIMITS.ownConcurrency) {
      const own = this.#waiting[this.#next];
      if (own === undefined) {
        this.#waiting = [];
        this.#next = 0;
        return;
      }
      this.#next += 1;
      if (own.isVoid()) continue;
      this.#underWay += 1;
      const { stationId, commandId, command, isAboutUnknown = false, done } = own;
      const answer = (given: StationAnswer): void => {
        this.#underWay -= 1;
        done(isFailure(given) ? undefined : given);
        // Not at once: answers may come synchronously, and a long queue must not grow the stack.
        queueMicrotask(() => this.#advance());
      };
      this.#mailboxes.submit(stationId, { commandId, actor: SYSTEM, command, isAboutUnknown, answer });
    }
  }
}
