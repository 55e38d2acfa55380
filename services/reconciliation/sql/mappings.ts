/** Mappings of CSV files. Each query is confined to an organization. */
import type { CsvMapping } from "../../bus/messages/csv-mapping.ts";
import type { Queryable } from "../../db/pool.ts";

export interface MappingRow {
  readonly mapping_id: number;
  readonly name: string;
  readonly version: number;
  readonly is_newest: boolean;
  readonly definition: CsvMapping;
  readonly created_by: number;
  readonly created_at: Date;
}

const columns = (sql: Queryable) => sql`
  m.mapping_id, m.name, m.version, m.definition, m.created_by, m.created_at, not exists (
    select from statement_mappings n where n.organization_id = m.organization_id and n.name = m.name and n.version > m.version
  ) as is_newest`;

export async function listStatementMappings(
  sql: Queryable,
  page: {
    readonly organizationId: number;
    readonly name: string | undefined;
    readonly isNewest: boolean;
    readonly sinceId: number;
    readonly limit: number;
  },
): Promise<readonly MappingRow[]> {
  const name = page.name ?? null;
  return await sql<MappingRow[]>`
    select * from (
      select ${columns(sql)} from statement_mappings m
      where m.organization_id = ${page.organizationId} and m.mapping_id > ${page.sinceId}
        and (${name}::text is null or m.name = ${name})
    ) listed where is_newest or not ${page.isNewest}
    order by mapping_id limit ${page.limit}`;
}

export async function getStatementMapping(
  sql: Queryable,
  key: { readonly organizationId: number; readonly mappingId: number },
): Promise<MappingRow | undefined> {
  const [row] = await sql<MappingRow[]>`
    select ${columns(sql)} from statement_mappings m
    where m.organization_id = ${key.organizationId} and m.mapping_id = ${key.mappingId}`;
  return row;
}

/** The newest version of the name, and whether its definition is this one. */
export async function findNewestMapping(
  sql: Queryable,
  key: { readonly organizationId: number; readonly name: string; readonly definition: CsvMapping },
): Promise<(MappingRow & { readonly is_same: boolean }) | undefined> {
  const [row] = await sql<(MappingRow & { is_same: boolean })[]>`
    select ${columns(sql)}, m.definition = ${sql.json(key.definition)} as is_same from statement_mappings m
    where m.organization_id = ${key.organizationId} and m.name = ${key.name}
    order by m.version desc limit 1`;
  return row;
}

export async function countMappings(sql: Queryable, organizationId: number): Promise<number> {
  const [row] = await sql<[{ count: number }]>`
    select count(*) as count from statement_mappings where organization_id = ${organizationId}`;
  return row.count;
}

/** Undefined when another request has stored this version at the same moment. */
export async function insertMapping(
  sql: Queryable,
  mapping: {
    readonly organizationId: number;
    readonly name: string;
    readonly version: number;
    readonly definition: CsvMapping;
    readonly createdBy: number;
  },
): Promise<MappingRow | undefined> {
  const { organizationId, name, version, definition, createdBy } = mapping;
  const [row] = await sql<MappingRow[]>`
    insert into statement_mappings (organization_id, name, version, definition, created_by)
    values (${organizationId}, ${name}, ${version}, ${sql.json(definition)}, ${createdBy})
    on conflict (organization_id, name, version) do nothing
    returning *, true as is_newest`;
  return row;
}

interface UploadedFile {
  readonly import_id: number;
  readonly object_name: string | null;
  readonly size_bytes: number;
  /** Of its account. */
  readonly time_zone: string | null;
}

/** The file of an import, whatever the status of the import. */
export async function findUploadedFile(
  sql: Queryable,
  key: { readonly organizationId: number; readonly importId: number },
): Promise<UploadedFile | undefined> {
  const [row] = await sql<UploadedFile[]>`
    select i.import_id, i.object_name, i.size_bytes, a.time_zone
    from statement_imports i join statement_accounts a using (account_id)
    where i.organization_id = ${key.organizationId} and i.import_id = ${key.importId}`;
  return row;
}
