import type { Database } from "../../db/pool.ts";

/** Any number; it only must differ from other one-number advisory locks in this database (node-pg-migrate has one). */
const LEADER_LOCK = 4_711_000_001;

/** Tries to take the lock of the one relay that delivers; it is held until its session ends. Says which session holds it. */
export async function tryLeaderLock(
  session: Database,
): Promise<{ readonly isLeader: boolean; readonly backendPid: number }> {
  const [row] = await session<[{ is_leader: boolean; backend_pid: number }]>`
    select pg_try_advisory_lock(${LEADER_LOCK}::bigint) as is_leader, pg_backend_pid() as backend_pid`;
  return { isLeader: row.is_leader, backendPid: row.backend_pid };
}
