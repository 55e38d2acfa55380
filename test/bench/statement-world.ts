/** The world of the reconciliation bench: an organization, accounts, files that wait for their import, and payments. */
import { createHash } from "node:crypto";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { IMPORT_LIMITS } from "../../services/reconciliation/limits.ts";
import { objectName, ROW_SQL, STATEMENT_ACCOUNT, type StatementFile } from "./statement-files.ts";

export interface StatementWorld {
  /** A connection for SQL statements over all rows. */
  readonly database: Database;
  readonly organizationId: number;
  /** The account of the only filial, which receives the payments by QR. */
  readonly accountId: number;
  /** Stores a file that waits for its import. Returns the import's id. */
  upload(file: StatementFile, accountId?: number): Promise<number>;
  addAccount(): Promise<number>;
  /** Throws unless the import has stored these numbers of new and known lines. */
  requireLines(importId: number, expected: { readonly lines_new: number; readonly lines_known: number }): Promise<void>;
  /** Stores a settled QR payment for each row of the file, at its day and with its references. */
  settlePayments(file: StatementFile): Promise<void>;
  stop(): Promise<void>;
}

const STATIONS = 20;
/** The first intent id of the bench, after those of the product. Order numbers of a station fit into an integer. */
const FIRST_INTENT = 1_000_000_000;

export async function openStatementWorld(url: string): Promise<StatementWorld> {
  const { longestWorkMs } = IMPORT_LIMITS;
  const database = openDatabase({ url, maxConnections: 4, longestWorkMs, idleInTransactionMs: longestWorkMs });
  const place = await addOrganization(database);
  const { organization_id: organizationId, filial_id: filialId, config_id: configId } = place;
  let accounts = 0;
  const addAccount = async (config: number | null = null): Promise<number> => {
    accounts += 1;
    const [row] = await database<[{ account_id: number }]>`
      insert into statement_accounts (organization_id, filial_id, provider, reference, name, mode, config_id)
      values (${organizationId}, ${filialId}, ${`sandbox-${accounts}`}, ${STATEMENT_ACCOUNT}, 'Bench', 'live', ${config})
      returning account_id`;
    return row.account_id;
  };
  const qrAccountId = await addAccount(configId);
  return {
    database,
    organizationId,
    accountId: qrAccountId,
    addAccount: () => addAccount(),
    async upload(file, accountId = qrAccountId) {
      const name = objectName(file);
      const sha256 = createHash("sha256").update(name).digest();
      const [row] = await database<[{ import_id: number }]>`
        insert into statement_imports (organization_id, account_id, sha256, file_name, size_bytes, object_name, format,
          format_version, encoding, status, uploaded_by)
        values (${organizationId}, ${accountId}, ${sha256}, 'statement.csv', 0, ${name}, 'sandbox', 1, 'utf-8', 'waiting', 1)
        returning import_id`;
      return row.import_id;
    },
    async requireLines(importId, expected) {
      const [row] = await database<[{ lines_new: number; lines_known: number; status: string }]>`
        select lines_new, lines_known, status from statement_imports where import_id = ${importId}`;
      const isSame = row.lines_new === expected.lines_new && row.lines_known === expected.lines_known;
      if (!isSame || row.status !== "imported") throw new Error(`The import has ended as ${JSON.stringify(row)}.`);
    },
    settlePayments: (file) => settlePayments(database, place, file),
    stop: () => closeDatabase(database),
  };
}

interface Place {
  readonly organization_id: number;
  readonly filial_id: number;
  readonly config_id: number;
  /** The id of the first station. The ids of the stations follow one another. */
  readonly station_id: number;
}

async function addOrganization(database: Database): Promise<Place> {
  const [place] = await database<[Place]>`
    with o as (insert into organizations (name) values ('Bench') returning organization_id),
    f as (insert into filials (organization_id, name) select organization_id, 'Centre' from o returning *),
    s as (insert into stations (organization_id, filial_id, name, currency)
      select organization_id, filial_id, 'Counter ' || n, 'EUR' from f, generate_series(1, ${STATIONS}::int) n returning station_id),
    c as (insert into provider_configs (organization_id, filial_id, kind, mode, name, settings)
      select organization_id, filial_id, 'emvco_generic', 'live', 'QR', '{}' from f returning config_id)
    select f.organization_id, f.filial_id, c.config_id, (select min(station_id) from s) as station_id from f, c`;
  return place;
}

async function settlePayments(database: Database, place: Place, { prefix, rows }: StatementFile): Promise<void> {
  const { organization_id: organizationId, config_id: configId, station_id: stationId } = place;
  await database.unsafe(
    `insert into provider_payments (intent_id, config_id, organization_id, station_id, order_display_number, reference, account,
        amount_minor, currency, expires_at, asked_until, paid_reference, paid_at)
      select ${FIRST_INTENT} + n, $2, $1, $3 + n % ${STATIONS}, n, 'int_' || $4 || '-' || n, $5,
        ${ROW_SQL.amountMinor}, 'EUR', ${ROW_SQL.day}, ${ROW_SQL.day}, $4 || '-' || n, ${ROW_SQL.day} + time '10:00'
      from generate_series(1, $6::int) n`,
    [organizationId, configId, stationId, prefix, STATEMENT_ACCOUNT, rows],
  );
  await database.unsafe(
    `with o as (
        insert into orders (organization_id, station_id, display_number, status, currency, total_minor, opened_by)
        select $1, $2 + n % ${STATIONS}, n, 'paid', 'EUR', ${ROW_SQL.amountMinor}, 1 from generate_series(1, $4::int) n
        returning order_id, station_id, display_number as n
      )
      insert into transactions (organization_id, order_id, station_id, intent_id, route, amount_minor, currency, reference,
        attested_by, settled_at)
      select $1, order_id, station_id, ${FIRST_INTENT} + n, 'dynamic_qr', ${ROW_SQL.amountMinor}, 'EUR', $3 || '-' || n, 1,
        ${ROW_SQL.day} + time '10:00' from o`,
    [organizationId, stationId, prefix, rows],
  );
  await database`vacuum analyze`;
}
