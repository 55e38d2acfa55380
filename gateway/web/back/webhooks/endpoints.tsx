import { Button } from "../../shared/button.tsx";
import { call } from "../../shared/call.ts";
import { Dialog } from "../../shared/dialog.tsx";
import { clockTime, dateAndTime } from "../../shared/format.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { FailureNotice, Notice } from "../../shared/states.tsx";
import { Table } from "../../shared/table.tsx";
import { overlapOptions } from "../providers/providers.tsx";
import { ask, closeDialog, openForm, showDialog, showOnce } from "../shell/dialogs.tsx";
import { ChoiceFilter, EmptyList, FilterBar, useFilters } from "../shell/filters.tsx";
import { Listed, mapReply, pageOf, usePages } from "../shell/loading.tsx";
import { StatusTag } from "../shell/status-tag.tsx";
import { shellWords } from "../shell/words.ts";
import type { ConsumerNames } from "./consumer-names.ts";
import { AttemptFacts } from "./delivery.tsx";
import { VIEWS } from "./views.ts";
import { words } from "./words.ts";

type Endpoint = ReplyOf<"GET /api/backoffice/v1/webhook-endpoints/">["webhook_endpoints"][number];
type WithSecret = ReplyOf<"POST /api/backoffice/v1/webhook-endpoints/">;
type Tested = ReplyOf<"POST /api/backoffice/v1/webhook-endpoints/{endpoint_id}/test/">;

/** The health of an endpoint changes with each delivery. */
const EVERY_MS = 10_000;
/** The service waits up to ten seconds for the target. */
const TEST_DEADLINE_MS = 25_000;

/** The choice that replaces the newest secret, which the consumer has not received. */
const LOST = "lost";

export function Endpoints({ consumers }: { readonly consumers: ConsumerNames }) {
  const filters = useFilters(VIEWS);
  const { consumer = "" } = filters.query;
  const endpoints = usePages(
    `endpoints ${consumer}`,
    (since_id) =>
      mapReply(
        call("GET /api/backoffice/v1/webhook-endpoints/", { query: { since_id, consumer_id: consumer || undefined } }),
        (reply) => pageOf(reply.webhook_endpoints, reply.has_more, (one) => one.endpoint_id),
      ),
    EVERY_MS,
  );
  const add = (): void =>
    openForm({
      title: words().addEndpoint,
      action: words().addEndpoint,
      fields: [
        {
          name: "consumer_id",
          label: words().consumer,
          options: consumers.options,
          initial: consumer,
        },
        { name: "url", label: words().url, help: words().urlHelp, initial: "https://", maxLength: 2_000 },
      ],
      run: ({ consumer_id, url = "" }, key) =>
        call("POST /api/backoffice/v1/webhook-endpoints/", { body: { consumer_id: Number(consumer_id), url }, key }),
      after: (reply) => showSecret(reply, endpoints.reload),
    });
  return (
    <>
      <FilterBar
        filters={filters}
        actions={
          consumers.options.length > 0 && (
            <Button kind="main" onClick={add}>
              {words().addEndpoint}
            </Button>
          )
        }
      >
        <ChoiceFilter filters={filters} name="consumer" label={words().consumer} options={consumers.options} />
      </FilterBar>
      <Listed
        of={endpoints}
        empty={<EmptyList filters={filters} title={words().noEndpoint} text={words().noEndpointText} />}
      >
        {(rows) => (
          <Table
            caption={words().tabs.endpoints}
            rows={rows}
            keyOf={(one) => one.endpoint_id}
            columns={[
              {
                title: words().endpoint,
                cell: (one) => (
                  <>
                    <code>{one.url}</code>
                    <div class="small soft">{consumers.nameOf(one.consumer_id)}</div>
                  </>
                ),
              },
              { title: shellWords().status, cell: (one) => <StatusTag status={one.status} /> },
              { title: words().health, cell: (one) => <Health endpoint={one} /> },
              { title: shellWords().actions, cell: (one) => <Actions endpoint={one} reload={endpoints.reload} /> },
            ]}
          />
        )}
      </Listed>
    </>
  );
}

function showSecret({ secret }: WithSecret, then: () => unknown): unknown {
  showOnce({ title: words().secretOf, values: [{ label: words().secret, value: secret }] });
  return then();
}

function Health({ endpoint }: { readonly endpoint: Endpoint }) {
  const { last_success_at, last_failure_at, consecutive_failures, open_until, disabled_reason } = endpoint;
  return (
    <div class="small">
      {disabled_reason !== null && <p>{words().disabledReason[disabled_reason]}</p>}
      <p>
        {words().lastSuccess}: {last_success_at === null ? shellWords().never : dateAndTime(last_success_at)}
      </p>
      {last_failure_at !== null && (
        <p>
          {words().lastFailure}: {dateAndTime(last_failure_at)}
        </p>
      )}
      {consecutive_failures > 0 && <p>{words().failures(consecutive_failures)}</p>}
      {open_until !== null && (
        <p>
          {words().openUntil} {clockTime(open_until)}
        </p>
      )}
    </div>
  );
}

function showTest({ webhook_delivery, attempt }: Tested): void {
  const isGood = attempt.error === null;
  showDialog(
    <Dialog title={words().testTitle} onClose={closeDialog}>
      <Notice tone={isGood ? "good" : "bad"} title={isGood ? words().testWorked : words().testFailed} isUrgent />
      <AttemptFacts attempt={attempt} />
      <div class="row row-spread">
        <a
          class="button"
          href={`/back/webhooks/?view=deliveries&delivery=${webhook_delivery.delivery_id}`}
          onClick={closeDialog}
        >
          {words().delivery} {webhook_delivery.delivery_id}
        </a>
        <Button local onClick={closeDialog}>
          {shellWords().close}
        </Button>
      </div>
    </Dialog>,
  );
}

function Actions({ endpoint, reload }: { readonly endpoint: Endpoint; readonly reload: () => unknown }) {
  const path = { endpoint_id: endpoint.endpoint_id };
  const isActive = endpoint.status === "active";
  const test = async (): Promise<void> => {
    const name = "POST /api/backoffice/v1/webhook-endpoints/{endpoint_id}/test/";
    const result = await call(name, { path }, { deadlineMs: TEST_DEADLINE_MS });
    if (result.ok) showTest(result.reply);
    else {
      showDialog(
        <Dialog title={words().testTitle} onClose={closeDialog}>
          <FailureNotice failure={result} />
          <Button local onClick={closeDialog}>
            {shellWords().close}
          </Button>
        </Dialog>,
      );
    }
    await reload();
  };
  const move = (): void =>
    ask({
      title: isActive ? words().pauseTitle : words().resumeTitle,
      text: [endpoint.url, isActive ? words().pauseText : words().resumeText],
      action: isActive ? words().pause : words().activate,
      isDangerous: isActive,
      run: () =>
        call("PATCH /api/backoffice/v1/webhook-endpoints/{endpoint_id}/", {
          path,
          body: { status: isActive ? "paused" : "active" },
        }),
      done: isActive ? words().paused : words().resumed,
      after: reload,
    });
  const lost = endpoint.secrets.length > 1 ? [{ value: LOST, text: words().replacesLost }] : [];
  const rotate = (): void =>
    openForm({
      title: words().rotate,
      intro: words().rotateIntro,
      action: words().rotate,
      fields: [{ name: "overlap", label: words().overlap, options: [...overlapOptions(), ...lost] }],
      run: ({ overlap }) =>
        call("POST /api/backoffice/v1/webhook-endpoints/{endpoint_id}/rotate/", {
          path,
          body: overlap === LOST ? { replaces_lost: true } : { overlap_seconds: Number(overlap) },
        }),
      after: (reply) => showSecret(reply, reload),
    });
  const remove = (): void =>
    ask({
      title: words().removeTitle,
      text: [endpoint.url, words().removeText],
      action: words().remove,
      isDangerous: true,
      run: () => call("DELETE /api/backoffice/v1/webhook-endpoints/{endpoint_id}/", { path }),
      done: words().removed,
      after: reload,
    });
  return (
    <div class="cell-actions">
      <Button onClick={test}>{words().test}</Button>
      <a class="button" href={`/back/webhooks/?view=deliveries&endpoint=${endpoint.endpoint_id}`}>
        {words().tabs.deliveries}
      </a>
      <Button onClick={rotate}>{words().rotate}</Button>
      <Button onClick={move}>{isActive ? words().pause : words().activate}</Button>
      <Button kind="danger" onClick={remove}>
        {words().remove}
      </Button>
    </div>
  );
}
