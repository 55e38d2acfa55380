/** Provider configs as far as the registry needs them: the providers service owns their table. */
import type { Transaction } from "../../db/pool.ts";

/** The config's id, held until the transaction ends; undefined when the organization has none such. */
export async function lockProviderConfig(
  sql: Transaction,
  organizationId: number,
  configId: number,
): Promise<number | undefined> {
  const [row] = await sql<{ config_id: number }[]>`
    select config_id from provider_configs
    where organization_id = ${organizationId} and config_id = ${configId} for key share`;
  return row?.config_id;
}
