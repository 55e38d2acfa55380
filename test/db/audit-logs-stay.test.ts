/** Entries of an audit log are permanent: no statement changes or deletes them. */
import { beforeAll, expect, test } from "vitest";
import type { Database } from "../../services/db/pool.ts";
import { openClone } from "../support/open-clone.ts";

let sql: Database;

beforeAll(async () => {
  const clone = await openClone();
  sql = clone.sql;
  await sql`insert into organizations (name) values ('Bistro')`;
  const event = { actor_id: 1, actor_name: "Ana", action: "done", subject_id: 1 };
  await sql`insert into registry_events ${sql({ ...event, organization_id: 1, actor_kind: "owner", subject_kind: "organization" })}`;
  await sql`insert into provider_events ${sql({ ...event, organization_id: 1, actor_role: "owner", subject_kind: "provider_issue" })}`;
  await sql`insert into robotics_trail ${sql({ ...event, organization_id: 1, actor_kind: "owner", subject_kind: "serving_task" })}`;
  return clone.stop;
});

test.each(["registry_events", "provider_events", "robotics_trail"])(
  "%s: changes, deletions and truncation are refused",
  async (table) => {
    await expect(sql`update ${sql(table)} set actor_name = 'Ben'`).rejects.toThrow("never change");
    await expect(sql`delete from ${sql(table)}`).rejects.toThrow("never change");
    await expect(sql`truncate ${sql(table)} cascade`).rejects.toThrow("never change");
    expect(await sql`select actor_name from ${sql(table)}`).toEqual([{ actor_name: "Ana" }]);
  },
);
