/** Creates a thing only once, even when its request comes several times with the same Idempotency-Key (I6). */
import type { Creation } from "../bus/messages/creation.ts";
import { RefusedError } from "../bus/refusals.ts";
import type { Database, ExpiredRows, Transaction } from "./pool.ts";

interface Steps<T> {
  readonly create: (tx: Transaction) => Promise<T>;
  readonly idOf: (made: T) => number;
  /**
   * Reads the thing of an earlier request, in its current state. Left out when only the first answer may show a secret.
   */
  readonly again?: (tx: Transaction, id: number) => Promise<T | undefined>;
}

/**
 * Runs `create` in a transaction. Without a key it does so each time. With a key, a repetition waits for the first
 * request and returns the thing that it has created. Refuses with `idempotency_key_reused` (another request),
 * `already_created` (only the first answer may show a secret) or `not_found` (the thing was deleted since).
 */
export async function createOnce<T>(database: Database, creation: Creation | undefined, steps: Steps<T>): Promise<T> {
  return (await database.begin(async (tx) => {
    if (creation === undefined) return await steps.create(tx);
    const earlierId = await claim(tx, creation);
    if (earlierId !== undefined) return await readAgain(tx, earlierId, steps);
    const made = await steps.create(tx);
    // This waits for no other transaction, because none can hold this row.
    await tx`update creations set made_id = ${steps.idOf(made)} where creation_id = ${creation.id}`;
    return made;
  })) as T;
}

/** The id of the thing that an earlier request has created; undefined when this request is the first. */
async function claim(tx: Transaction, { id, digest }: Creation): Promise<number | undefined> {
  const claimed = await tx`
    insert into creations (creation_id, request_digest) values (${id}, ${digest}) on conflict do nothing`;
  if (claimed.count === 1) return undefined;
  const [earlier] = await tx<{ request_digest: string; made_id: number }[]>`
    select request_digest, made_id from creations where creation_id = ${id}`;
  if (earlier === undefined) throw new Error("The retention has just deleted this key.");
  if (earlier.request_digest !== digest) throw new RefusedError({ code: "idempotency_key_reused" });
  return earlier.made_id;
}

async function readAgain<T>(tx: Transaction, id: number, { again }: Steps<T>): Promise<T> {
  if (again === undefined) {
    const detail = `The first request with this key made ${id}; what its answer showed once is not shown again.`;
    throw new RefusedError({ code: "already_created", detail });
  }
  const known = await again(tx, id);
  if (known === undefined)
    throw new RefusedError({ code: "not_found", detail: "What this key made was deleted since." });
  return known;
}

/** Deletes old keys: a repetition does not come so late. */
export async function deleteOldCreations(database: Database, { olderThanDays, rows }: ExpiredRows): Promise<number> {
  const deleted = await database`
    delete from creations where creation_id in (
      select creation_id from creations where created_at < now() - make_interval(days => ${olderThanDays})
      order by created_at limit ${rows})`;
  return deleted.count;
}
