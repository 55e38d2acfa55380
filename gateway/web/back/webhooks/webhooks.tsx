/** Webhooks: consumers, their endpoints, and the deliveries with their attempts. */
import { call } from "../../shared/call.ts";
import { useLoad } from "../../shared/use-load.ts";
import { useFilters } from "../shell/filters.tsx";
import { SectionHead } from "../shell/frame.tsx";
import { allPages, LARGEST_PAGE, mapReply, pageOf } from "../shell/loading.tsx";
import { namesOf } from "./consumer-names.ts";
import { Consumers } from "./consumers.tsx";
import { Deliveries } from "./deliveries.tsx";
import { Delivery } from "./delivery.tsx";
import { Endpoints } from "./endpoints.tsx";
import { words } from "./words.ts";

const TABS = ["consumers", "endpoints", "deliveries"] as const;

export function Webhooks() {
  const { query } = useFilters();
  const consumers = useLoad("consumer names", () =>
    allPages((since_id) =>
      mapReply(
        call("GET /api/backoffice/v1/robotics-consumers/", { query: { since_id, limit: LARGEST_PAGE } }),
        (reply) => pageOf(reply.robotics_consumers, reply.has_more, (one) => one.consumer_id),
      ),
    ),
  );
  const names = namesOf(consumers.data ?? []);
  const tab = TABS.find((each) => each === query.view) ?? "consumers";
  const delivery = Number(query.delivery);
  return (
    <>
      <SectionHead name="webhooks" intro={words().intro} />
      <nav class="tabs" aria-label={words().view}>
        {TABS.map((each) => (
          <a
            key={each}
            class="tab"
            href={`/back/webhooks/?view=${each}`}
            aria-current={each === tab ? "page" : undefined}
          >
            {words().tabs[each]}
          </a>
        ))}
      </nav>
      {tab === "consumers" && <Consumers onChange={consumers.reload} />}
      {tab === "endpoints" && <Endpoints consumers={names} />}
      {tab === "deliveries" &&
        (delivery > 0 ? (
          <Delivery key={delivery} deliveryId={delivery} consumers={names} />
        ) : (
          <Deliveries consumers={names} />
        ))}
    </>
  );
}
