/** The database's pulse (`services/db/pulse.ts`). */
import { BUS_LIMITS } from "../../bus/limits.ts";
import type { Database } from "../../db/pool.ts";
import { fence, LeaseLostError } from "./leader-lease.ts";

/**
 * Raises the pulse above the one on the bus, and returns it. Does not raise it when the bus is so far ahead that the database
 * must be an older one. Throws `LeaseLostError`.
 */
export async function raisePulse(sql: Database, epoch: number, onBus: number): Promise<number> {
  const [row] = await sql<{ pulse: number }[]>`
    ${fence(sql, epoch)}
    update installation
    set pulse = case when pulse + ${BUS_LIMITS.pulsesAhead} >= ${onBus} then greatest(pulse, ${onBus}) + 1 else pulse end
    from fence returning pulse`;
  if (row === undefined) throw new LeaseLostError(epoch);
  return row.pulse;
}
