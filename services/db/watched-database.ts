/**
 * A pool in which every call ends. The server's time-outs work only while the server can still answer. A stalled
 * server, or a connection that was lost without a close, would let a caller wait for ever. So each call has a deadline
 * here, too. When a call passes its deadline, a new pool replaces the old one, and all calls that wait in the old one
 * fail.
 */
import type postgres from "postgres";

/** As in `pool.ts`, which imports this file. */
type Database = postgres.Sql<{ int8: number }>;

/** A call was not answered in time. Whether its statement, or its commit, took effect is not known. */
export class DatabaseDeadlineError extends Error {
  readonly code = "database_deadline";
  constructor(deadlineMs: number) {
    super(`The database has not answered for ${deadlineMs / 1000} s.`);
    this.name = "DatabaseDeadlineError";
  }
}

/** The pool ended before the transaction did. Whether its commit took effect is not known. */
class DatabaseEndedError extends Error {
  readonly code = "database_ended";
  constructor() {
    super("The database connection was ended before its transaction.");
    this.name = "DatabaseEndedError";
  }
}

interface WatchOptions {
  /** Makes a pool; called again for each replacement. */
  readonly open: () => Database;
  /** The deadline for one statement, and for the begin of a transaction. */
  readonly statementDeadlineMs: number;
  /** The deadline for a whole transaction, from its begin. */
  readonly transactionDeadlineMs: number;
  /** Called when the server has answered a statement, or has begun a transaction. */
  readonly onAnswered: () => void;
  /** Called with 1 when a statement or transaction begins, and with -1 when it ends, also by an error. */
  readonly onCalls?: (change: 1 | -1) => void;
  /** Called when `end` is called. */
  readonly onEnd?: () => void;
}

/** A statement of the driver. `handle` sends it when a caller first awaits it; `reject` fails it. */
interface Statement extends Promise<unknown> {
  handle(): Promise<void>;
  reject(error: Error): void;
  /** Set when a connection has taken the statement. */
  readonly state: object | null;
}

type Work = (transaction: unknown) => unknown;

/** A database with the interface of the pools that `open` makes. `end` ends it for good. */
export function watchDatabase(options: WatchOptions): Database {
  const pools = new Pools(options);
  const watched = Object.assign(
    (...args: unknown[]) => pools.statement((pool) => Reflect.apply(pool, undefined, args)),
    {
      unsafe: (...args: unknown[]) =>
        pools.statement((pool) => pool.unsafe(...(args as Parameters<Database["unsafe"]>))),
      begin: (...args: unknown[]) => pools.begin(args),
      end: (how?: { readonly timeout?: number }) => pools.end(how),
    },
  );
  // Everything else, such as `json`, comes from the current pool.
  return new Proxy(watched, {
    get: (target, name) => Reflect.get(Object.hasOwn(target, name) ? target : pools.current, name),
  }) as unknown as Database;
}

class Pools {
  readonly #options: WatchOptions;
  #current: Database;
  #isEnded = false;
  #answeredAtMs = Number.NEGATIVE_INFINITY;
  /** The transactions under way, with the pool of each. */
  readonly #transactions = new Map<(error: Error) => void, Database>();

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#current = options.open();
  }

  get current(): Database {
    return this.#current;
  }

  async end(how?: { readonly timeout?: number }): Promise<void> {
    this.#isEnded = true;
    this.#options.onEnd?.();
    await this.#current.end(how);
    this.#failTransactions(this.#current);
  }

  /**
   * Fails the transactions of a pool that has ended: the driver lets some of them wait for ever. It does so one turn
   * later, so that a transaction with a successful commit still resolves.
   */
  #failTransactions(pool: Database): void {
    setImmediate(() => {
      for (const [fail, of] of this.#transactions) if (of === pool) fail(new DatabaseEndedError());
    });
  }

  /**
   * Makes a statement with a deadline. Anything else, such as a list of values, is returned unchanged. The deadline
   * begins when the statement is sent, so a part of another statement has none.
   */
  statement(make: (pool: Database) => unknown): unknown {
    const pool = this.#current;
    const made = make(pool);
    if (!(made instanceof Promise)) return made;
    const statement = made as Statement;
    const send = statement.handle.bind(statement);
    let isSent = false;
    statement.handle = () => {
      if (!isSent) {
        isSent = true;
        this.#options.onCalls?.(1);
        const deadlineMs = this.#options.statementDeadlineMs;
        const stop = this.#watch(deadlineMs, () => {
          this.#passed(pool, { deadlineMs, isTaken: statement.state !== null });
          statement.reject(new DatabaseDeadlineError(deadlineMs));
        });
        const ended = (isAnswered: boolean): void => {
          this.#options.onCalls?.(-1);
          if (isAnswered) this.#answered(stop);
          else stop();
        };
        // The statement's `then` would send it.
        void Promise.prototype.then.call(
          statement,
          () => ended(true),
          (error: unknown) => ended(isAnswer(error)),
        );
      }
      return send();
    };
    return statement;
  }

  async begin(args: unknown[]): Promise<unknown> {
    const pool = this.#current;
    const { statementDeadlineMs, transactionDeadlineMs } = this.#options;
    const late = Promise.withResolvers<never>();
    let isLate = false;
    const passed = (deadlineMs: number, isTaken: boolean): void => {
      isLate = true;
      this.#passed(pool, { deadlineMs, isTaken });
      late.reject(new DatabaseDeadlineError(deadlineMs));
    };
    this.#transactions.set(late.reject, pool);
    this.#options.onCalls?.(1);
    let stop = this.#watch(statementDeadlineMs, () => passed(statementDeadlineMs, false));
    const work = args.at(-1) as Work;
    const begun: Work = (transaction) => {
      // Its caller has received the error, so the transaction must not run any more.
      if (isLate) throw new DatabaseDeadlineError(statementDeadlineMs);
      this.#answered(stop);
      stop = this.#watch(transactionDeadlineMs, () => passed(transactionDeadlineMs, true));
      return work(transaction);
    };
    try {
      const result = await Promise.race([
        (pool.begin as (...args: unknown[]) => Promise<unknown>)(...args.slice(0, -1), begun),
        late.promise,
      ]);
      this.#answered(stop);
      return result;
    } finally {
      stop();
      this.#options.onCalls?.(-1);
      this.#transactions.delete(late.reject);
    }
  }

  #answered(stop: () => void): void {
    stop();
    this.#answeredAtMs = performance.now();
    this.#options.onAnswered();
  }

  /**
   * Replaces the pool after a passed deadline. A pool that answers other calls is only busy: then just the waiting call
   * fails.
   */
  #passed(pool: Database, call: { readonly deadlineMs: number; readonly isTaken: boolean }): void {
    if (pool !== this.#current || this.#isEnded) return;
    if (!call.isTaken && performance.now() - this.#answeredAtMs < call.deadlineMs) return;
    this.#current = this.#options.open();
    void pool.end({ timeout: 0 }).then(() => this.#failTransactions(pool));
  }

  /** Calls `onPassed` once after `deadlineMs`, unless the returned function was called before. */
  #watch(deadlineMs: number, onPassed: () => void): () => void {
    let turn: NodeJS.Immediate | undefined;
    const timer = setTimeout(() => {
      // If this process was stalled, the answer may have arrived: the next turn reads it first.
      turn = setImmediate(onPassed);
    }, deadlineMs);
    return () => {
      clearTimeout(timer);
      if (turn !== undefined) clearImmediate(turn);
    };
  }
}

/**
 * Whether the error shows that the server works. A refused statement does; an error that ends the session, such as a
 * refused log-in, does not.
 */
function isAnswer(error: unknown): boolean {
  return error instanceof Error && "severity" in error && error.severity === "ERROR";
}
