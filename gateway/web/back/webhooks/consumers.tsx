import { Button } from "../../shared/button.tsx";
import { call } from "../../shared/call.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { Empty, Tag } from "../../shared/states.tsx";
import { Table } from "../../shared/table.tsx";
import { TEXT_BOUNDS } from "../../shared/text-bounds.ts";
import { ask, openForm, showOnce } from "../shell/dialogs.tsx";
import { label, optionsOf } from "../shell/labels.ts";
import { Listed, mapReply, pageOf, usePages } from "../shell/loading.tsx";
import { usePlaces } from "../shell/places.ts";
import { StatusTag } from "../shell/status-tag.tsx";
import { shellWords } from "../shell/words.ts";
import { words } from "./words.ts";

type Consumer = ReplyOf<"GET /api/backoffice/v1/robotics-consumers/">["robotics_consumers"][number];
type WithCredential = ReplyOf<"POST /api/backoffice/v1/robotics-consumers/">;
const MODES = ["live", "test"] as const satisfies readonly Consumer["mode"][];

export function Consumers({ onChange }: { readonly onChange: () => unknown }) {
  const places = usePlaces();
  const consumers = usePages("consumers", (since_id) =>
    mapReply(call("GET /api/backoffice/v1/robotics-consumers/", { query: { since_id } }), (reply) =>
      pageOf(reply.robotics_consumers, reply.has_more, (one) => one.consumer_id),
    ),
  );
  const reload = (): Promise<unknown> => Promise.all([consumers.reload(), onChange()]);
  const add = (): void =>
    openForm({
      title: words().addConsumer,
      action: words().addConsumer,
      fields: [
        { name: "filial_id", label: shellWords().filial, options: places.data?.filialOptions ?? [] },
        { name: "name", label: shellWords().name, maxLength: TEXT_BOUNDS.name },
        { name: "mode", label: words().mode, options: optionsOf("mode", MODES) },
      ],
      run: ({ filial_id, name = "", mode }, key) =>
        call("POST /api/backoffice/v1/robotics-consumers/", {
          body: { filial_id: Number(filial_id), name, mode: mode as Consumer["mode"] },
          key,
        }),
      after: (reply) => showCredential(reply, reload),
    });
  return (
    <>
      {(places.data?.filials.length ?? 0) > 0 && (
        <div class="row">
          <Button kind="main" onClick={add}>
            {words().addConsumer}
          </Button>
        </div>
      )}
      <Listed of={consumers} empty={<Empty title={words().noConsumer}>{words().noConsumerText}</Empty>}>
        {(rows) => (
          <Table
            caption={words().tabs.consumers}
            rows={rows}
            keyOf={(one) => one.consumer_id}
            columns={[
              { title: words().consumer, cell: (one) => <strong>{one.name}</strong> },
              { title: shellWords().filial, cell: (one) => places.data?.filialName(one.filial_id) ?? "" },
              { title: words().mode, cell: (one) => <Tag>{label("mode", one.mode)}</Tag> },
              { title: shellWords().status, cell: (one) => <StatusTag status={one.status} /> },
              { title: shellWords().actions, cell: (one) => <Actions consumer={one} reload={reload} /> },
            ]}
          />
        )}
      </Listed>
    </>
  );
}

function showCredential({ robotics_consumer, credential }: WithCredential, then: () => unknown): unknown {
  const title = words().credentialOf(robotics_consumer.name);
  showOnce({ title, values: [{ label: words().credential, value: credential }] });
  return then();
}

function Actions({ consumer, reload }: { readonly consumer: Consumer; readonly reload: () => unknown }) {
  const { name } = consumer;
  const path = { consumer_id: consumer.consumer_id };
  const isActive = consumer.status === "active";
  const rename = (): void =>
    openForm({
      title: words().rename,
      action: words().rename,
      fields: [{ name: "name", label: shellWords().name, initial: name, maxLength: TEXT_BOUNDS.name }],
      run: (values) =>
        call("PATCH /api/backoffice/v1/robotics-consumers/{consumer_id}/", { path, body: { name: values.name ?? "" } }),
      done: words().changed,
      after: reload,
    });
  const move = (): void =>
    ask({
      title: isActive ? words().suspendTitle(name) : words().activateTitle(name),
      text: [isActive ? words().suspendText : words().activateText],
      action: isActive ? words().suspend : words().activate,
      isDangerous: isActive,
      run: () =>
        call("PATCH /api/backoffice/v1/robotics-consumers/{consumer_id}/", {
          path,
          body: { status: isActive ? "suspended" : "active" },
        }),
      done: words().changed,
      after: reload,
    });
  const resetCredential = (): void =>
    ask({
      title: words().newCredentialTitle(name),
      text: [words().newCredentialText],
      action: words().newCredential,
      isDangerous: true,
      run: () => call("POST /api/backoffice/v1/robotics-consumers/{consumer_id}/reset-credential/", { path }),
      after: (reply) => showCredential(reply, reload),
    });
  return (
    <div class="cell-actions">
      <a class="button" href={`/back/webhooks/?view=endpoints&consumer=${consumer.consumer_id}`}>
        {words().tabs.endpoints}
      </a>
      <Button onClick={rename}>{words().rename}</Button>
      <Button onClick={resetCredential}>{words().newCredential}</Button>
      <Button kind={isActive ? "danger" : undefined} onClick={move}>
        {isActive ? words().suspend : words().activate}
      </Button>
    </div>
  );
}
