/** The question which open order the money pays. It lists the orders that fit, because people know no ids. */
import { useSignal } from "@preact/signals";
import { call } from "../../shared/call.ts";
import { Choice } from "../../shared/field.tsx";
import { dateAndTime, money } from "../../shared/format.ts";
import { FailureNotice, Notice, Skeleton } from "../../shared/states.tsx";
import { useLoad } from "../../shared/use-load.ts";
import { stationName } from "../known.ts";
import { Refusal } from "../refusal.tsx";
import { WithReason } from "../with-reason.tsx";
import { words } from "../words.ts";
import { attribute } from "./actions.ts";
import { isAbove } from "./amounts.ts";
import type { IssueDetails } from "./issue-list.ts";

interface AttributeProps {
  readonly known: IssueDetails;
  readonly onClose: () => void;
}

export function Attribute({ known: { issue, alone_up_to: limit }, onClose }: AttributeProps) {
  const chosen = useSignal("");
  const { issue_id, amount, currency } = issue;
  // Reads the orders again when the page reads the issue again: meanwhile one may be paid, or another one opened.
  const { data, failure, reload } = useLoad(
    String(issue_id),
    () => call("GET /api/reconciliation/v1/issues/{issue_id}/payable-orders/", { path: { issue_id } }),
    { again: issue },
  );
  const orders = data?.orders ?? [];
  const order = orders.find(({ order_id }) => String(order_id) === chosen.value);
  const texts = words().attribute;
  const isProposal = amount !== null && limit !== null && isAbove(amount, limit);
  return (
    <WithReason
      onClose={onClose}
      title={texts.title}
      action={isProposal ? texts.propose : texts.action}
      blockedBecause={order === undefined ? texts.orderNeeded : null}
      onConfirm={(reason) => attribute({ issueId: issue_id, orderId: order?.order_id ?? 0, reason, isProposal })}
    >
      {amount !== null && currency !== null && <p>{texts.help(money(amount, currency))}</p>}
      {isProposal && limit !== null && currency !== null && (
        <p class="notice notice-warn">{texts.two(money(limit, currency))}</p>
      )}
      {failure?.code === "conflict" && <Refusal failure={failure} />}
      {failure !== null && failure.code !== "conflict" && <FailureNotice failure={failure} onRetry={reload} />}
      {data === null && failure === null && <Skeleton blocks={1} />}
      {data !== null && orders.length === 0 && (
        <Notice title={texts.none}>
          <p>{texts.noneHelp}</p>
        </Notice>
      )}
      {orders.length > 0 && (
        <Choice
          label={texts.order}
          value={order === undefined ? "" : chosen.value}
          onChange={(value) => {
            chosen.value = value;
          }}
          options={[
            { value: "", text: texts.choose },
            ...orders.map(({ order_id, order_display_number: number, station_id, opened_at }) => ({
              value: String(order_id),
              text: `${words().orderAt(number, stationName(station_id))} · ${dateAndTime(opened_at)}`,
            })),
          ]}
        />
      )}
    </WithReason>
  );
}
