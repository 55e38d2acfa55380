/**
 * A pool whose every call ends. The server's own time-outs end a statement only while the server can still say so; one
 * that stands still, or a connection that went away without a word, would leave its caller waiting for good. So each
 * call has a deadline here too, and a pool that let one pass is replaced: what still waits in it is refused.
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

export interface WatchOptions {
  /** Makes a pool; called again for each replacement. */
  readonly open: () => Database;
  /** For one statement, and for a transaction to begin. */
  readonly statementDeadlineMs: number;
  /** For a whole transaction, from its begin. */
  readonly transactionDeadlineMs: number;
  /** Called when the server has answered a statement, or has begun a transaction. */
  readonly onAnswered: () => void;
  /** Called with 1 when a statement or transaction begins, and with -1 when it has ended, however it ends. */
  readonly onCalls?: (change: 1 | -1) => void;
  /** Called when the interface is ended for good. */
  readonly onEnd?: () => void;
}

/** A statement of the driver: sent when it is first awaited, and settled by these two of its properties. */
interface Statement extends Promise<unknown> {
  handle(): Promise<void>;
  reject(error: Error): void;
  /** Set when a connection has taken it. */
  readonly state: object | null;
}

type Work = (transaction: unknown) => unknown;

/** The same interface as the pool that `open` makes; `end` ends it for good. */
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
  // Everything else, such as `json`, is the current pool's.
  return new Proxy(watched, {
    get: (own, name) => Reflect.get(Object.hasOwn(own, name) ? own : pools.current, name),
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
   * A pool that has ended leaves a transaction waiting whose connection was not closed by the other side. A turn later,
   * because one that has just been committed is about to learn it.
   */
  #failTransactions(pool: Database): void {
    setImmediate(() => {
      for (const [fail, of] of this.#transactions) if (of === pool) fail(new DatabaseEndedError());
    });
  }

  /** What is no statement, such as a list of values, is passed on; a part of another statement is never sent itself. */
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
        // Not the statement's `then`, which would send it.
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
      // Its caller has learned that it failed: nothing of it may happen any more.
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

  /** A pool that answers others is busy and not broken: then only the call that waited in vain fails. */
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
      // If it was this process that stood still, the answer is there and is read first.
      turn = setImmediate(onPassed);
    }, deadlineMs);
    return () => {
      clearTimeout(timer);
      if (turn !== undefined) clearImmediate(turn);
    };
  }
}

/** A refused statement is an answer as good as any. One that ends its session, such as a refused log-in, is none. */
function isAnswer(error: unknown): boolean {
  return error instanceof Error && "severity" in error && error.severity === "ERROR";
}
