import { call } from "../../shared/call.ts";
import { dateAndTime } from "../../shared/format.ts";
import type { ReplyOf, RequestOf } from "../../shared/operations.ts";
import { Table } from "../../shared/table.tsx";
import { ChoiceFilter, EmptyList, FilterBar, useFilters } from "../shell/filters.tsx";
import { optionsOf } from "../shell/labels.ts";
import { Listed, mapReply, pageOf, usePages } from "../shell/loading.tsx";
import { StatusTag } from "../shell/status-tag.tsx";
import { shellWords } from "../shell/words.ts";
import type { ConsumerNames } from "./consumer-names.ts";
import { VIEWS } from "./views.ts";
import { words } from "./words.ts";

type OneDelivery = ReplyOf<"GET /api/backoffice/v1/webhook-deliveries/">["webhook_deliveries"][number];
type Query = NonNullable<RequestOf<"GET /api/backoffice/v1/webhook-deliveries/">["query"]>;

const STATUSES = [
  "pending",
  "delivered",
  "failed",
  "lapsed",
  "unsent",
] as const satisfies readonly OneDelivery["status"][];
const EVENTS = [
  "serving_task.offered",
  "serving_task.cancelled",
  "serving_task.expired",
  "robotics.paused",
  "robotics.resumed",
  "webhook.test",
] as const satisfies readonly OneDelivery["event_type"][];
const EVERY_MS = 5_000;

export function Deliveries({ consumers }: { readonly consumers: ConsumerNames }) {
  const filters = useFilters(VIEWS);
  const { consumer, endpoint, status, event } = filters.query;
  const deliveries = usePages(
    `deliveries ${consumer} ${endpoint} ${status} ${event}`,
    (before_id) => {
      const query: Query = {
        before_id,
        consumer_id: consumer || undefined,
        endpoint_id: endpoint || undefined,
        status: status || undefined,
        event_type: event || undefined,
      };
      return mapReply(call("GET /api/backoffice/v1/webhook-deliveries/", { query }), (reply) =>
        pageOf(reply.webhook_deliveries, reply.has_more, (one) => one.delivery_id),
      );
    },
    EVERY_MS,
  );
  return (
    <>
      <FilterBar filters={filters}>
        <ChoiceFilter filters={filters} name="consumer" label={words().consumer} options={consumers.options} />
        <ChoiceFilter
          filters={filters}
          name="status"
          label={shellWords().status}
          options={optionsOf("status", STATUSES)}
        />
        <ChoiceFilter
          filters={filters}
          name="event"
          label={words().event}
          options={EVENTS.map((value) => ({ value, text: value }))}
        />
      </FilterBar>
      <Listed
        of={deliveries}
        empty={<EmptyList filters={filters} title={words().noDelivery} text={words().noDeliveryText} />}
      >
        {(rows) => (
          <Table
            caption={words().tabs.deliveries}
            rows={rows}
            keyOf={(one) => one.delivery_id}
            columns={[
              {
                title: words().delivery,
                cell: (one) => (
                  <a href={filters.addressWith({ delivery: String(one.delivery_id) })}>{one.delivery_id}</a>
                ),
              },
              { title: words().event, cell: (one) => <code>{one.event_type}</code> },
              { title: words().consumer, cell: (one) => consumers.nameOf(one.consumer_id) },
              { title: shellWords().status, cell: (one) => <StatusTag status={one.status} /> },
              { title: words().attempts, isNumber: true, cell: (one) => one.attempts },
              { title: words().at, cell: (one) => dateAndTime(one.created_at) },
              {
                title: words().next,
                cell: (one) => (one.next_attempt_at === null ? "" : dateAndTime(one.next_attempt_at)),
              },
            ]}
          />
        )}
      </Listed>
    </>
  );
}
