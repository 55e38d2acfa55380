import type { Queryable } from "../../db/pool.ts";

/** Stores the id of the key, if the installation has none. Returns the id that it has. */
export async function storeCodeKeyId(sql: Queryable, keyId: string): Promise<string> {
  const [row] = await sql<{ key_id: string }[]>`
    update installation set enrollment_code_key_id = coalesce(enrollment_code_key_id, ${keyId})
    returning enrollment_code_key_id as key_id`;
  if (row === undefined) throw new Error("The table installation is empty.");
  return row.key_id;
}
