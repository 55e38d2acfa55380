/** Removes matches with their lines and payments. */
import type { Fragment, Transaction } from "../../db/pool.ts";

/** `which` is a query of `match_id`. */
export async function removeMatches(sql: Transaction, which: Fragment): Promise<void> {
  await sql`
    with removed as (delete from statement_matches where match_id in (${which}) returning match_id),
    lines as (delete from match_lines l using removed r where l.match_id = r.match_id)
    delete from match_payments p using removed r where p.match_id = r.match_id`;
}
