import type { Role } from "../../bus/messages/caller.ts";
import type { USER_STATUSES } from "../../bus/messages/users.ts";
import type { Queryable, Transaction } from "../../db/pool.ts";

export interface UserRow {
  readonly user_id: number;
  readonly organization_id: number;
  readonly email: string;
  readonly name: string;
  readonly role: Role;
  readonly status: (typeof USER_STATUSES)[number];
}

/** PostgreSQL's code for a value that another row has. */
const UNIQUE_VIOLATION = "23505";

/** A user with the password hash that a log-in is checked against. */
export interface CheckableUser extends UserRow {
  readonly password_hash: string;
}

const userColumns = (sql: Queryable) => sql`user_id, organization_id, email, name, role, status`;

/** The stored form: upper and lower case name the same person. */
export function canonicalEmail(email: string): string {
  return email.trim().toLowerCase();
}

/** Returns undefined when the e-mail address is taken. */
export async function createUser(
  sql: Queryable,
  user: {
    readonly organizationId: number;
    readonly email: string;
    readonly name: string;
    readonly role: Role;
    readonly passwordHash: string;
  },
): Promise<UserRow | undefined> {
  const [row] = await sql<UserRow[]>`
    insert into users (organization_id, email, name, role, password_hash)
    values (${user.organizationId}, ${canonicalEmail(user.email)}, ${user.name}, ${user.role}, ${user.passwordHash})
    on conflict (email) do nothing
    returning ${userColumns(sql)}`;
  return row;
}

/** Up to `limit` users of the organization after one of them, by id. */
export async function listUsers(
  sql: Queryable,
  page: { readonly organizationId: number; readonly sinceId: number; readonly limit: number },
): Promise<UserRow[]> {
  return sql<UserRow[]>`
    select ${userColumns(sql)} from users
    where organization_id = ${page.organizationId} and user_id > ${page.sinceId}
    order by user_id limit ${page.limit}`;
}

/** Users are never deleted: those who have left, and the cashiers of deleted sandboxes, are suspended. */
export async function countActiveUsers(sql: Queryable, organizationId: number): Promise<number> {
  const [row] = await sql<[{ count: number }]>`
    select count(*) as count from users where organization_id = ${organizationId} and status = 'active'`;
  return row.count;
}

/** Finds a user of any organization by the e-mail address alone. */
export async function getUserByEmail(sql: Queryable, email: string): Promise<CheckableUser | undefined> {
  const [row] = await sql<CheckableUser[]>`
    select ${userColumns(sql)}, password_hash from users where email = ${canonicalEmail(email)}`;
  return row;
}

/** A user, and whether they have logged in lately from the address or with a browser of this attempt. */
export interface UserAtPlace extends CheckableUser {
  readonly is_known_address: boolean;
  readonly known_browser: Buffer | null;
}

/** Finds the user of a log-in, whose caller has no organization yet. */
export async function getUserAtPlace(
  sql: Queryable,
  attempt: {
    readonly email: string;
    readonly addressHash: Buffer;
    readonly knownDays: number;
    readonly browserHashes: readonly Buffer[];
    readonly browserDays: number;
  },
): Promise<UserAtPlace | undefined> {
  const { email, addressHash, knownDays, browserHashes, browserDays } = attempt;
  const hexHashes = browserHashes.map((hash) => hash.toString("hex"));
  const [row] = await sql<UserAtPlace[]>`
    select ${userColumns(sql)}, password_hash, exists (
      select from known_addresses
      where known_addresses.user_id = users.user_id and address_hash = ${addressHash}
        and last_login_at > now() - ${knownDays}::float8 * interval '1 day') as is_known_address, (
      select token_hash from known_browsers
      where known_browsers.user_id = users.user_id
        and token_hash in (select decode(hash, 'hex') from unnest(${hexHashes}::text[]) hash)
        and last_login_at > now() - ${browserDays}::float8 * interval '1 day'
      order by last_login_at desc limit 1) as known_browser
    from users where email = ${canonicalEmail(email)}`;
  return row;
}

export async function getUser(
  sql: Queryable,
  organizationId: number,
  userId: number,
): Promise<CheckableUser | undefined> {
  const [row] = await sql<CheckableUser[]>`
    select ${userColumns(sql)}, password_hash from users
    where organization_id = ${organizationId} and user_id = ${userId}`;
  return row;
}

export async function setPasswordHash(sql: Queryable, userId: number, passwordHash: string): Promise<void> {
  await sql`update users set password_hash = ${passwordHash} where user_id = ${userId}`;
}

export async function moveUser(sql: Queryable, userId: number, status: UserRow["status"]): Promise<UserRow> {
  const [row] = await sql<[UserRow]>`
    update users set status = ${status} where user_id = ${userId} returning ${userColumns(sql)}`;
  return row;
}

/**
 * These users of the organization, and on request every active owner as well. They are locked until the transaction
 * ends, so that changes of one user and their sessions come one after another. The locks are taken in the order of the
 * ids, so that two transactions never deadlock.
 */
export async function lockUsers(
  sql: Transaction,
  organizationId: number,
  userIds: readonly number[],
  { withOwners = false }: { readonly withOwners?: boolean } = {},
): Promise<CheckableUser[]> {
  const owners = withOwners ? sql`or (role = 'owner' and status = 'active')` : sql``;
  return sql<CheckableUser[]>`
    select ${userColumns(sql)}, password_hash from users
    where organization_id = ${organizationId} and (user_id = any(${[...userIds]}::bigint[]) ${owners})
    order by user_id for no key update`;
}

/** Returns undefined when the e-mail address is taken; the transaction cannot go on then. */
export async function changeUser(
  sql: Transaction,
  userId: number,
  to: Pick<UserRow, "name" | "email" | "role">,
): Promise<UserRow | undefined> {
  try {
    const [row] = await sql<[UserRow]>`
      update users set name = ${to.name}, email = ${to.email}, role = ${to.role} where user_id = ${userId}
      returning ${userColumns(sql)}`;
    return row;
  } catch (error) {
    if (isTakenEmail(error)) return undefined;
    throw error;
  }
}

function isTakenEmail(error: unknown): boolean {
  const { code, constraint_name: constraint } = error as { readonly code?: string; readonly constraint_name?: string };
  return code === UNIQUE_VIOLATION && constraint === "users_email_key";
}
