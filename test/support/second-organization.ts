/** A second organization in the same installation, to show that it can neither see nor change the first one's data. */
import postgres from "postgres";
import type { LogIn, TestSystem } from "./system.ts";

/**
 * Adds the organization and an owner with the sandbox owner's password. It does so by SQL, because the endpoint needs the
 * platform key, which most tests' systems lack. `test/gateway/people/organizations.test.ts` tests the endpoint.
 */
export async function addOrganization(system: TestSystem): Promise<{ owner: LogIn }> {
  const email = "owner@elsewhere.example";
  const sql = postgres(system.database.url, { max: 1 });
  await sql`
    with elsewhere as (insert into organizations (name) values ('Elsewhere') returning organization_id)
    insert into users (organization_id, email, name, role, password_hash)
    select elsewhere.organization_id, ${email}, 'Olga Elsewhere', 'owner', users.password_hash
    from elsewhere, users where users.email = ${system.owner.email}`;
  await sql.end();
  return { owner: { email, password: system.owner.password } };
}
