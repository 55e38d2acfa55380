/**
 * A bounded queue in front of each station with one worker per station that has work, and the queue of the commands that the
 * host gives itself.
 */
import { isDeepStrictEqual } from "node:util";
import { partitionOf } from "../../machines/partition.ts";
import { STATION_LIMITS } from "./limits.ts";
import { BUSY, isFailure, type StationAnswer, SYSTEM, UNAVAILABLE, type Work } from "./work.ts";

/** Work with all requesters that wait for its answer: a repeated request waits for the answer to the first one. */
interface Entry {
  readonly work: Work;
  /** Empty after the answer, and for work that no request can repeat. */
  answers: Work["answer"][];
}

interface Mailbox {
  current: Entry;
  waiting: Entry[];
}

function entryOf(asked: Work): Entry {
  const answer: Work["answer"] = (answered) => {
    const { answers } = entry;
    entry.answers = [];
    for (const each of answers) each(answered);
  };
  const entry: Entry = { work: { ...asked, answer }, answers: [asked.answer] };
  return entry;
}

const isAwaited = ({ work, answers }: Entry, asked: Work): boolean =>
  answers.length > 0 &&
  work.commandId === asked.commandId &&
  isDeepStrictEqual([work.actor, work.command, work.isRestoring], [asked.actor, asked.command, asked.isRestoring]);

export class Mailboxes {
  /** Only stations with work are here; a passive station has no mailbox. */
  readonly #boxes = new Map<number, Mailbox>();
  readonly #perform: (stationId: number, work: Work) => Promise<void>;
  readonly #busy = { station: 0, host: 0 };
  #waiting = 0;

  /** `perform` does one piece of work and answers it; it must not reject. */
  constructor(perform: (stationId: number, work: Work) => Promise<void>) {
    this.#perform = perform;
  }

  /** Work that waits, of all stations. */
  get waiting(): number {
    return this.#waiting;
  }

  /** How much work was refused so far because the queue of its station, or all of them together, were full. */
  get busyRefusals(): Readonly<Record<"station" | "host", number>> {
    return this.#busy;
  }

  /** Takes work in order of arrival; a full queue answers "busy" at once. Repeated work is not queued again. */
  submit(stationId: number, work: Work): void {
    const box = this.#boxes.get(stationId);
    if (box !== undefined) {
      const same = [box.current, ...box.waiting].find((entry) => isAwaited(entry, work));
      if (same !== undefined) return void same.answers.push(work.answer);
    }
    const isFull = (box?.waiting.length ?? 0) >= STATION_LIMITS.mailboxLength;
    if (isFull || this.#waiting >= STATION_LIMITS.hostQueueLength) {
      this.#busy[isFull ? "station" : "host"] += 1;
      return work.answer(BUSY);
    }
    this.#waiting += 1;
    if (box === undefined) void this.#open(stationId, entryOf(work));
    else box.waiting.push(entryOf(work));
  }

  /**
   * Takes work before all waiting work: the end of a settlement or a provider's answer (a station has at most one of them),
   * and the work that waited for it.
   */
  submitFirst(stationId: number, work: Work): void {
    const box = this.#boxes.get(stationId);
    this.#waiting += 1;
    // The same object as before: the runner measures a command that waited for a settlement once.
    const entry: Entry = { work, answers: [] };
    if (box === undefined) void this.#open(stationId, entry);
    else box.waiting.unshift(entry);
  }

  /** Answers all waiting work of a partition that this host releases. Work that was begun is finished. */
  refuse(partition: number): void {
    for (const [stationId, box] of this.#boxes) {
      if (partitionOf(stationId) !== partition) continue;
      const refused = box.waiting;
      box.waiting = [];
      this.#waiting -= refused.length;
      for (const { work } of refused) work.answer(UNAVAILABLE);
    }
  }

  /** Whether the station has work under way or waiting. */
  isAtWork(stationId: number): boolean {
    return this.#boxes.has(stationId);
  }

  /** Whether a station of these partitions has work under way or waiting. */
  isBusy(partitions: ReadonlySet<number>): boolean {
    for (const stationId of this.#boxes.keys()) if (partitions.has(partitionOf(stationId))) return true;
    return false;
  }

  async #open(stationId: number, first: Entry): Promise<void> {
    const box: Mailbox = { current: first, waiting: [first] };
    this.#boxes.set(stationId, box);
    for (let entry = box.waiting.shift(); entry !== undefined; entry = box.waiting.shift()) {
      this.#waiting -= 1;
      box.current = entry;
      await this.#perform(stationId, entry.work);
    }
    this.#boxes.delete(stationId);
  }
}

interface LocalWork {
  readonly stationId: number;
  readonly commandId: string;
  readonly command: Work["command"];
  readonly isAboutUnknown?: boolean;
  /** The id of the HTTP request behind it, for the log. */
  readonly requestId?: string | undefined;
  /** True when the partition was released meanwhile: its next owner knows what is due. */
  readonly isVoid: () => boolean;
  /** Called with the answer, or with undefined after a failure, which the caller retries. */
  readonly done: (answer: Exclude<StationAnswer, { failure: string }> | undefined) => void;
}

/** The host's own commands, a bounded number at a time: after a take-over tens of thousands of them may be due at once. */
export class LocalCommands {
  readonly #mailboxes: Pick<Mailboxes, "submit">;
  /** One entry at most for each station or device with something due, because each waits for `done`. */
  #waiting: LocalWork[] = [];
  #next = 0;
  #underWay = 0;

  constructor(mailboxes: Pick<Mailboxes, "submit">) {
    this.#mailboxes = mailboxes;
  }

  submit(local: LocalWork): void {
    this.#waiting.push(local);
    this.#advance();
  }

  #advance(): void {
    while (this.#underWay < STATION_LIMITS.localConcurrency) {
      const local = this.#waiting[this.#next];
      if (local === undefined) {
        this.#waiting = [];
        this.#next = 0;
        return;
      }
      this.#next += 1;
      if (local.isVoid()) continue;
      this.#underWay += 1;
      const { stationId, commandId, command, isAboutUnknown = false, requestId, done } = local;
      const answer = (stationAnswer: StationAnswer): void => {
        this.#underWay -= 1;
        done(isFailure(stationAnswer) ? undefined : stationAnswer);
        // In a microtask, because answers may come synchronously, and a long queue must not grow the stack.
        queueMicrotask(() => this.#advance());
      };
      const work = { commandId, actor: SYSTEM, command, isAboutUnknown, requestId, answer };
      this.#mailboxes.submit(stationId, work);
    }
  }
}
