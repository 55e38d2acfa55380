/** One delivery and its attempts: the address of each attempt and the target's answer. */
import { Button } from "../../shared/button.tsx";
import { call } from "../../shared/call.ts";
import { dateAndTime } from "../../shared/format.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { Tag } from "../../shared/states.tsx";
import { useLoad } from "../../shared/use-load.ts";
import { ask } from "../shell/dialogs.tsx";
import { useFilters } from "../shell/filters.tsx";
import { Facts } from "../shell/frame.tsx";
import { LoadedView } from "../shell/loading.tsx";
import { StatusTag } from "../shell/status-tag.tsx";
import { shellWords } from "../shell/words.ts";
import type { ConsumerNames } from "./consumer-names.ts";
import { words } from "./words.ts";

type Detail = ReplyOf<"GET /api/backoffice/v1/webhook-deliveries/{delivery_id}/">;
type Attempt = Detail["attempts"][number];

const RELOAD_EVERY_MS = 3_000;

interface DeliveryProps {
  readonly deliveryId: number;
  readonly consumers: ConsumerNames;
}

export function Delivery({ deliveryId, consumers }: DeliveryProps) {
  const filters = useFilters();
  const path = { delivery_id: deliveryId };
  const detail = useLoad(
    `delivery ${deliveryId}`,
    () => call("GET /api/backoffice/v1/webhook-deliveries/{delivery_id}/", { path }),
    { everyMs: RELOAD_EVERY_MS },
  );
  return (
    <>
      <p>
        <a href={filters.addressWith({ delivery: "" })}>{words().backToDeliveries}</a>
      </p>
      <LoadedView of={detail}>
        {({ webhook_delivery: one, attempts }) => (
          <>
            <section class="card stack" aria-labelledby="delivery">
              <div class="section-head">
                <h2 id="delivery">
                  {words().delivery} {one.delivery_id}
                </h2>
                {one.event_type !== "webhook.test" && one.endpoint_id !== null && (
                  <Button onClick={() => resend(deliveryId, detail.reload)}>{words().redeliver}</Button>
                )}
              </div>
              <Facts
                of={[
                  [shellWords().status, <StatusTag key="status" status={one.status} />],
                  [words().event, <code key="event">{one.event_type}</code>],
                  [words().consumer, consumers.nameOf(one.consumer_id)],
                  [words().at, dateAndTime(one.created_at)],
                  [words().next, one.next_attempt_at === null ? "–" : dateAndTime(one.next_attempt_at)],
                ]}
              />
              <h3>{words().payload}</h3>
              <pre>{JSON.stringify(one.payload, null, 2)}</pre>
            </section>
            <section class="stack" aria-labelledby="attempts">
              <h2 id="attempts">{words().attempts}</h2>
              {attempts.length === 0 && <p class="soft">{words().noAttempt}</p>}
              {attempts.map((attempt) => (
                <div key={attempt.attempt_id} class="card">
                  <AttemptFacts attempt={attempt} />
                </div>
              ))}
            </section>
          </>
        )}
      </LoadedView>
    </>
  );
}

function resend(deliveryId: number, reload: () => unknown): void {
  ask({
    title: words().redeliverTitle,
    text: [words().redeliverText],
    action: words().redeliver,
    run: (_reason, key) =>
      call("POST /api/backoffice/v1/webhook-deliveries/{delivery_id}/redeliver/", {
        path: { delivery_id: deliveryId },
        key,
      }),
    done: words().redelivered,
    after: reload,
  });
}

export function AttemptFacts({ attempt }: { readonly attempt: Attempt }) {
  const { error, status, total_ms, address, response_body, truncated, manual } = attempt;
  return (
    <div class="stack">
      <Facts
        of={[
          [words().at, dateAndTime(attempt.started_at)],
          [
            words().answer,
            <>
              <Tag tone={error === null ? "good" : "bad"}>{status ?? "–"}</Tag>
              {manual && <Tag>{words().manual}</Tag>}
              {error !== null && <p class="small">{words().error[error]}</p>}
            </>,
          ],
          [words().duration, total_ms === null ? "–" : words().milliseconds(total_ms)],
          [words().url, address ?? "–"],
        ]}
      />
      {response_body !== "" && <pre>{response_body}</pre>}
      {truncated && <p class="small soft">{words().truncated}</p>}
    </div>
  );
}
