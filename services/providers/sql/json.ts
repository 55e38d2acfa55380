/** A value for a `jsonb` column. */
import type { Queryable } from "../../db/pool.ts";

export type Json = Parameters<Queryable["json"]>[0];
