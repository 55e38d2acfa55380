/** People and their access. */
import { Button } from "../../shared/button.tsx";
import { call } from "../../shared/call.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { MIN_PASSWORD_CHARACTERS } from "../../shared/password-dialog.tsx";
import { Tag } from "../../shared/states.tsx";
import { Table } from "../../shared/table.tsx";
import { TEXT_BOUNDS } from "../../shared/text-bounds.ts";
import { sharedWords } from "../../shared/words.ts";
import { ask, type FormField, openForm } from "../shell/dialogs.tsx";
import { changePassword, SectionHead } from "../shell/frame.tsx";
import { label, optionsOf } from "../shell/labels.ts";
import { Listed, mapReply, pageOf, usePages } from "../shell/loading.tsx";
import { person } from "../shell/session.ts";
import { StatusTag } from "../shell/status-tag.tsx";
import { shellWords } from "../shell/words.ts";
import { words } from "./words.ts";

type User = ReplyOf<"GET /api/backoffice/v1/users/">["users"][number];
type Role = User["role"];
const ROLES = ["cashier", "reconciliation_operator", "owner"] as const satisfies readonly Role[];

export function People() {
  const users = usePages("users", (since_id) =>
    mapReply(call("GET /api/backoffice/v1/users/", { query: { since_id } }), (reply) =>
      pageOf(reply.users, reply.has_more, (user) => user.user_id),
    ),
  );
  return (
    <>
      <SectionHead name="people" intro={words().intro}>
        <Button kind="main" onClick={() => addPerson(users.reload)}>
          {words().add}
        </Button>
      </SectionHead>
      <Listed of={users} empty={null}>
        {(rows) => (
          <Table
            caption={shellWords().nav.people}
            rows={rows}
            keyOf={(user) => user.user_id}
            columns={[
              {
                title: words().person,
                cell: (user) => (
                  <>
                    <strong>{user.name}</strong>{" "}
                    {user.user_id === person.value?.user_id && <Tag tone="accent">{words().you}</Tag>}
                    <div class="small soft">{user.email}</div>
                  </>
                ),
              },
              { title: words().role, cell: (user) => label("role", user.role) },
              { title: words().permissions, cell: (user) => user.permissions.map(permissionText).join(", ") },
              { title: shellWords().status, cell: (user) => <StatusTag status={user.status} /> },
              { title: shellWords().actions, cell: (user) => <Actions user={user} reload={users.reload} /> },
            ]}
          />
        )}
      </Listed>
    </>
  );
}

const permissionText = (permission: string): string =>
  (words().permission as Readonly<Record<string, string>>)[permission] ?? permission;

const baseFields = (user?: User): FormField[] => [
  { name: "name", label: shellWords().name, initial: user?.name ?? "", maxLength: TEXT_BOUNDS.name },
  { name: "email", label: words().email, type: "email", initial: user?.email ?? "" },
  { name: "role", label: words().role, initial: user?.role ?? "cashier", options: optionsOf("role", ROLES) },
];

const passwordField = (): FormField => ({
  name: "password",
  label: words().password,
  type: "password",
  help: words().passwordHelp,
  check: (_trimmed, { password = "" }) =>
    password.length < MIN_PASSWORD_CHARACTERS ? sharedWords().newPasswordFault : null,
});

function addPerson(then: () => unknown): void {
  openForm({
    title: words().add,
    action: words().add,
    fields: [...baseFields(), passwordField()],
    run: ({ name = "", email = "", role, password = "" }) =>
      call("POST /api/backoffice/v1/users/", { body: { name, email, role: role as Role, password } }),
    done: words().added,
    after: then,
  });
}

function Actions({ user, reload }: { readonly user: User; readonly reload: () => unknown }) {
  const path = { user_id: user.user_id };
  const isSelf = user.user_id === person.value?.user_id;
  const change = (): void =>
    openForm({
      title: words().change,
      action: words().change,
      fields: baseFields(user),
      run: (_values, _key, { name, email, role }) =>
        call("PATCH /api/backoffice/v1/users/{user_id}/", {
          path,
          body: { name, email, role: role as Role | undefined },
        }),
      done: words().changed,
      after: reload,
    });
  const setPassword = (): void =>
    openForm({
      title: words().newPassword,
      intro: words().newPasswordIntro,
      action: words().newPassword,
      fields: [passwordField()],
      run: ({ password = "" }) =>
        call("PUT /api/backoffice/v1/users/{user_id}/password/", { path, body: { password } }),
      done: words().passwordSet,
    });
  const suspend = (): void =>
    ask({
      title: words().suspendTitle(user.name),
      text: [words().suspendText],
      action: words().suspend,
      isDangerous: true,
      run: () => call("POST /api/backoffice/v1/users/{user_id}/suspend/", { path }),
      done: words().suspended,
      after: reload,
    });
  const resume = (): void =>
    ask({
      title: words().resumeTitle(user.name),
      text: [words().resumeText],
      action: words().resume,
      run: () => call("POST /api/backoffice/v1/users/{user_id}/resume/", { path }),
      done: words().resumed,
      after: reload,
    });
  return (
    <div class="cell-actions">
      <Button onClick={change}>{words().change}</Button>
      {isSelf ? (
        <Button onClick={changePassword}>{sharedWords().changePassword}</Button>
      ) : (
        <Button onClick={setPassword}>{words().newPassword}</Button>
      )}
      {!isSelf && user.status === "active" && (
        <Button kind="danger" onClick={suspend}>
          {words().suspend}
        </Button>
      )}
      {user.status === "suspended" && <Button onClick={resume}>{words().resume}</Button>}
    </div>
  );
}
