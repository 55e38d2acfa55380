import type { Queryable, Transaction } from "../../db/pool.ts";
import type { Role } from "../permissions.ts";

export interface UserRow {
  readonly user_id: number;
  readonly organization_id: number;
  readonly email: string;
  readonly name: string;
  readonly role: Role;
}

/** An e-mail address is one person's, however it is written. */
export function canonicalEmail(email: string): string {
  return email.trim().toLowerCase();
}

/** Returns undefined when the e-mail address is taken. */
export async function insertUser(
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
    returning user_id, organization_id, email, name, role`;
  return row;
}

export async function listUsers(sql: Queryable, organizationId: number): Promise<UserRow[]> {
  return sql<UserRow[]>`
    select user_id, organization_id, email, name, role from users
    where organization_id = ${organizationId} order by user_id`;
}

export async function countUsers(sql: Queryable, organizationId: number): Promise<number> {
  const [row] = await sql<[{ count: number }]>`
    select count(*) as count from users where organization_id = ${organizationId}`;
  return row.count;
}

/** For a log-in: the only query that is not confined to an organization, because the caller has none yet. */
export async function findUserByEmail(
  sql: Queryable,
  email: string,
): Promise<(UserRow & { readonly password_hash: string }) | undefined> {
  const [row] = await sql<(UserRow & { password_hash: string })[]>`
    select user_id, organization_id, email, name, role, password_hash from users
    where email = ${canonicalEmail(email)}`;
  return row;
}

export async function setPasswordHash(sql: Queryable, userId: number, passwordHash: string): Promise<void> {
  await sql`update users set password_hash = ${passwordHash} where user_id = ${userId}`;
}

/**
 * The user's password hash as it is now; the user is held until the transaction ends, so that sessions of one user are
 * opened and ended one after another.
 */
export async function lockPasswordHash(sql: Transaction, userId: number): Promise<string | undefined> {
  const [row] = await sql<{ password_hash: string }[]>`
    select password_hash from users where user_id = ${userId} for no key update`;
  return row?.password_hash;
}
