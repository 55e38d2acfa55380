/**
 * The PostgreSQL driver, mended where a connection that breaks takes more with it than itself (postgres.js 3.4.9; its
 * issues 1066, 1154, 1208 and pull requests 1155, 1168). Unmended, PostgreSQL's own end could end our process, leave a
 * connection silent for good, or give one statement's rows to another.
 *
 * The texts are replaced while the driver is loaded, so that every way of installing it gives the same program. Another
 * version, in which a text does not occur, is refused at once.
 */
import { createRequire, registerHooks } from "node:module";
import type postgresDriver from "postgres";

interface Mend {
  readonly file: "index.js" | "connection.js";
  readonly was: string;
  readonly becomes: string;
  /** How often it stands there. */
  readonly times: number;
}

const MENDS: readonly Mend[] = [
  // A transaction whose connection has closed sent its `rollback` all the same: into nothing, which threw where nobody
  // can catch it, or into the connection made anew, which may be another transaction's by then.
  {
    file: "index.js",
    was: "let savepoints = 0\n",
    becomes: "let lost = null, savepoints = 0\n",
    times: 1,
  },
  {
    file: "index.js",
    was: "new Promise((_, reject) => connection.onclose = reject)",
    becomes: "new Promise((_, reject) => connection.onclose = (e) => reject(lost = e))",
    times: 1,
  },
  {
    file: "index.js",
    was: "q.catch(e => uncaughtError || (uncaughtError = e))\n",
    becomes: "q.catch(e => uncaughtError || (uncaughtError = e))\n        if (lost) return q.reject(lost)\n",
    times: 1,
  },
  // A write that waits for the end of the turn when the connection closes left its timer behind, and then the connection
  // made anew sent nothing, ever.
  {
    file: "connection.js",
    was: "\n    clearImmediate(nextWriteTimer)\n",
    becomes: "\n    clearImmediate(nextWriteTimer)\n    chunk = nextWriteTimer = null\n",
    times: 2,
  },
  {
    file: "connection.js",
    was: "const x = socket.write(chunk, fn)",
    becomes: "const x = socket !== null && socket.write(chunk, fn)",
    times: 1,
  },
  // What was asked between the socket's error and its close was neither refused nor forgotten: the connection made anew
  // took its own first answers for answers to that. And a server that closed a connection before it was ready was dialled
  // again at once, for as long as it did so, and the statement waited; with several servers the next one is dialled.
  {
    file: "connection.js",
    was: `    if (initial)
      return reconnect()

    !hadError && (query || sent.length) && error(`,
    becomes: `    const forget = () => {
      query = results = errorResponse = null
      result = new Result()
      rows = 0
    }

    if (initial && host.length > 1) {
      forget()
      return reconnect()
    }

    (query || initial || sent.length) && error(`,
    times: 1,
  },
  {
    file: "connection.js",
    was: "closedTime = performance.now()\n",
    becomes: "forget()\n    closedTime = performance.now()\n",
    times: 1,
  },
  // A connection that broke while it asked for its types left a rejection that nobody handles; whoever waits for the
  // connection is told in any case.
  {
    file: "connection.js",
    was: "return fetchArrayTypes()",
    becomes: "return fetchArrayTypes().catch(() => undefined)",
    times: 1,
  },
  // A statement that a connection sees for the first time is described first, and nothing ended that: PostgreSQL waited for
  // the rest as within one statement, where none of its time-outs applies. A process that hung there kept the locks of its
  // transaction for as long as it hung. Now the description ends as a statement does, and what waits then is an idle
  // transaction. Cursors, and descriptions by themselves, stay as they were.
  {
    file: "connection.js",
    was: "? Buffer.concat([describe(q), Flush])",
    becomes: "? Buffer.concat([describe(q), q.onlyDescribe || q.cursorFn ? Flush : Sync])",
    times: 1,
  },
  {
    file: "connection.js",
    was: "(write(prepared(query)), query.describeFirst = false)",
    becomes: "(write(prepared(query)), query.describeFirst = false, query.isDescribed = !query.cursorFn)",
    times: 1,
  },
  {
    file: "connection.js",
    was: "function ReadyForQuery(x) {\n",
    becomes:
      "function ReadyForQuery(x) {\n    if (query && query.isDescribed)\n      return query.isDescribed = false\n\n",
    times: 1,
  },
  {
    file: "connection.js",
    was: "(query.cursorFn || query.describeFirst) && write(Sync)",
    becomes: "(query.cursorFn || query.onlyDescribe) && write(Sync)",
    times: 2,
  },
];

/** The driver's entry point, as `import postgres from "postgres"` would give it unmended. */
export const postgres: typeof postgresDriver = loadMended();

function loadMended(): typeof postgresDriver {
  const pending = new Set(MENDS);
  const hooks = registerHooks({
    load(url, context, next) {
      const loaded = next(url, context);
      const mends = MENDS.filter(({ file }) => url.endsWith(`/postgres/cjs/src/${file}`));
      if (mends.length === 0) return loaded;
      let source = textOf(loaded.source);
      for (const mend of mends) {
        const parts = source.split(mend.was);
        if (parts.length !== mend.times + 1) continue;
        source = parts.join(mend.becomes);
        pending.delete(mend);
      }
      return { ...loaded, source };
    },
  });
  try {
    const load = createRequire(import.meta.url);
    // Loaded once before in this process, it would be taken from the cache, without a fix where somebody else loaded it.
    for (const path of Object.keys(load.cache).filter((known) => /\/postgres\/cjs\/src\//.test(known))) {
      Reflect.deleteProperty(load.cache, path);
    }
    const driver = load("postgres") as typeof postgresDriver;
    const [missed] = pending;
    if (missed === undefined) return driver;
    throw new Error(`This version of the package postgres does not have "${missed.was.trim()}" in ${missed.file}.`);
  } finally {
    hooks.deregister();
  }
}

function textOf(source: unknown): string {
  return typeof source === "string" ? source : new TextDecoder().decode(source as Uint8Array);
}
