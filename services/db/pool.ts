/**
 * The connection pool. Rows keep the `snake_case` names of SQL. `bigint` columns arrive as numbers, because all our ids
 * and counts stay far below 2^53.
 */
import type { Socket } from "node:net";
import postgres from "postgres";
import { UserError } from "../runtime/user-error.ts";
import { arrayTypes } from "./array-types.ts";
import { Dialer, DialGate, type DialTarget } from "./dialer.ts";
import { DATABASE_LIMITS } from "./limits.ts";
import { watchDatabase } from "./watched-database.ts";

/** A pool of connections; each statement may run on another one. */
export type Database = postgres.Sql<{ int8: number }>;
/** One transaction, as `database.begin` hands it to its callback. */
export type Transaction = postgres.TransactionSql<{ int8: number }>;
/** The parameter of a function that runs one SQL operation: a pool or a transaction. */
export type Queryable = postgres.ISql<{ int8: number }>;

/** A part of a statement, for use inside another statement. */
export type Fragment = postgres.PendingQuery<postgres.Row[]>;

/** What one statement of a retention job deletes (`services/runtime/retention.ts`). */
export interface ExpiredRows {
  readonly olderThanDays: number;
  /** The most rows that the statement deletes. */
  readonly rows: number;
}

export interface DatabaseOptions {
  readonly url: string;
  readonly maxConnections?: number | undefined;
  /**
   * The label `pool` of its metrics: the service, and the part of it where a service has several pools (`audit copier`).
   * `pg_stat_activity` shows it as `device-payments <name>`, so that an operator sees who holds a lock.
   */
  readonly name?: string;
  /** What `pg_stat_activity` shows instead of that. */
  readonly applicationName?: string;
  /** A deadline for the answer to a statement, for callers that cannot wait for the default one. */
  readonly statementDeadlineMs?: number;
  /**
   * For statements and transactions over whole files: how long each may take. The other limits of the pool do not
   * change.
   */
  readonly longestWorkMs?: number;
  /** How long a transaction whose process hangs keeps its locks. */
  readonly idleInTransactionMs?: number;
}

/** What the metrics show of a pool. */
export interface PoolFacts {
  readonly name: string;
  readonly maxConnections: number;
  /** Open now. */
  connections: number;
  /** Statements and transactions under way. */
  calls: number;
}

const pools = new Set<PoolFacts>();
/** The pools of this process that have not ended. */
export function openPools(): Iterable<PoolFacts> {
  return pools;
}

const INT8_OID = 20;

/**
 * Opens a pool; connections are made when they are first needed. Each call ends within `statementDeadlineMs`, a
 * transaction within `transactionDeadlineMs` more, with `DatabaseDeadlineError` at the latest. Throws UserError
 * `driver_unpatched`.
 */
export function openDatabase(options: DatabaseOptions): Database {
  if (!("isPatched" in postgres)) {
    const sentence = "The package postgres in node_modules lacks the patch in patches/: run `npm ci`, and start again.";
    throw new UserError(sentence, { code: "driver_unpatched" });
  }
  const gate = new DialGate();
  const { name = "unnamed", maxConnections = DATABASE_LIMITS.maxConnections } = options;
  const facts: PoolFacts = { name, maxConnections, connections: 0, calls: 0 };
  pools.add(facts);
  const answers = { atMs: Number.NEGATIVE_INFINITY };
  const database = watchDatabase({
    open: () => openPool(options, gate, facts),
    onCalls: (change) => {
      facts.calls += change;
    },
    onEnd: () => pools.delete(facts),
    statementDeadlineMs: options.statementDeadlineMs ?? options.longestWorkMs ?? DATABASE_LIMITS.statementDeadlineMs,
    transactionDeadlineMs: options.longestWorkMs ?? DATABASE_LIMITS.transactionDeadlineMs,
    onAnswered: () => {
      answers.atMs = performance.now();
      gate.answered();
    },
  });
  newestAnswers.set(database, answers);
  return database;
}

/** When PostgreSQL last answered a statement on each pool, in milliseconds of `performance.now()`. */
const newestAnswers = new WeakMap<Database, { atMs: number }>();

export function answeredAtMs(database: Database): number {
  return newestAnswers.get(database)?.atMs ?? Number.NEGATIVE_INFINITY;
}

function openPool(options: DatabaseOptions, gate: DialGate, facts: PoolFacts): Database {
  const dialer = new Dialer(gate);
  const pool = postgres(options.url, {
    max: facts.maxConnections,
    idle_timeout: DATABASE_LIMITS.idleConnectionSeconds,
    max_lifetime: DATABASE_LIMITS.connectionLifetimeSeconds,
    connect_timeout: DATABASE_LIMITS.connectTimeoutSeconds,
    keep_alive: DATABASE_LIMITS.keepAliveIdleSeconds,
    // The gate decides when to dial again. The driver's pause is only for refused connections.
    backoff: () => 0,
    ...customSocket(async (target) => counted(await dialer.dial(target), facts)),
    fetch_types: false,
    types: {
      int8: { to: INT8_OID, from: [INT8_OID], serialize: String, parse: parseSafeInteger },
      ...arrayTypes(parseSafeInteger),
    },
    connection: {
      application_name: options.applicationName ?? `device-payments ${facts.name}`,
      statement_timeout: options.longestWorkMs ?? DATABASE_LIMITS.statementTimeoutMs,
      lock_timeout: options.longestWorkMs ?? DATABASE_LIMITS.lockTimeoutMs,
      idle_in_transaction_session_timeout: options.idleInTransactionMs ?? DATABASE_LIMITS.idleInTransactionTimeoutMs,
      tcp_keepalives_idle: DATABASE_LIMITS.keepAliveIdleSeconds,
      tcp_keepalives_interval: DATABASE_LIMITS.keepAliveIntervalSeconds,
      tcp_keepalives_count: DATABASE_LIMITS.keepAliveCount,
      tcp_user_timeout: DATABASE_LIMITS.unacknowledgedMs,
      TimeZone: "UTC",
    },
    // Notices are for a person who types SQL. What matters to a program arrives as an error.
    onnotice: () => undefined,
  });
  const end = pool.end.bind(pool);
  pool.end = async (how) => {
    dialer.end();
    await end(how);
  };
  return pool;
}

function counted(socket: Socket, facts: PoolFacts): Socket {
  facts.connections += 1;
  socket.once("close", () => {
    facts.connections -= 1;
  });
  return socket;
}

/** The driver documents this option, but its types lack it. */
function customSocket(socket: (target: DialTarget) => Promise<Socket>): object {
  return { socket };
}

/** Waits for running statements, then closes every connection. */
export async function closeDatabase(database: Database): Promise<void> {
  await database.end({ timeout: DATABASE_LIMITS.closeTimeoutSeconds });
}

/**
 * An int8 as a number. Throws `RangeError` when a double cannot hold it exactly: an id or an amount must not be
 * rounded.
 */
export function parseSafeInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`The integer ${text} is too large for a number.`);
  return value;
}

/** A value for a `jsonb` column. */
export type Json = Parameters<Queryable["json"]>[0];
