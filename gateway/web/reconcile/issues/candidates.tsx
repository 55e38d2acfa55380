/** The payments that may match the statement line, the score of each, and a person's decision. */
import { useSignal } from "@preact/signals";
import { Button } from "../../shared/button.tsx";
import { call } from "../../shared/call.ts";
import { calendarDay, dateAndTime, money } from "../../shared/format.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { FailureNotice } from "../../shared/states.tsx";
import { useLoad } from "../../shared/use-load.ts";
import { stationName } from "../known.ts";
import { WithReason } from "../with-reason.tsx";
import { words } from "../words.ts";
import { decideMatch } from "./actions.ts";
import type { Issue } from "./issue-list.ts";

type Candidate = ReplyOf<"GET /api/reconciliation/v1/candidates/">["lines"][number]["candidates"][number];

interface Asked {
  readonly lineId: number;
  readonly paymentKeys: readonly string[];
  readonly isConfirmed: boolean;
}

export const hasCandidates = ({ kind, source }: Issue): boolean =>
  source === "statement" && (kind === "reference_mismatch" || kind === "ambiguous_match");

/** Whether all candidates of a line are the parts of its one group. */
const areOneGroup = (candidates: readonly Candidate[]): boolean =>
  candidates.length > 1 && candidates.every(({ explanation }) => Number(explanation["payments"]) === candidates.length);

export function Candidates({ issue }: { readonly issue: Issue }) {
  const [lineId] = issue.evidence.statement?.line_ids ?? [];
  if (!hasCandidates(issue) || lineId === undefined) return null;
  // The key ends a question about the line of another issue.
  return <CandidatesOfLine key={lineId} issue={issue} lineId={lineId} />;
}

const keyOf = ({ payment }: Candidate): string => payment.payment_key;

function CandidatesOfLine({ issue, lineId }: { readonly issue: Issue; readonly lineId: number }) {
  const asked = useSignal<Asked | null>(null);
  // Reads the candidates again when the page reads the issue again: the next run applies a decision.
  const { data, failure, reload } = useLoad(
    String(lineId),
    () => call("GET /api/reconciliation/v1/candidates/", { query: { line_id: lineId } }),
    { again: issue },
  );
  const found = data?.lines ?? [];
  // An open question stays, with what is typed, when the candidates cannot be read again.
  if (found.length === 0 && failure === null && asked.value === null) return null;
  const texts = words().candidates;
  return (
    <section class="stack-tight">
      <h3>{texts.title}</h3>
      {failure !== null && <FailureNotice failure={failure} onRetry={reload} />}
      {found.map(({ line, candidates }) => (
        <div key={line.line_id} class="stack-tight">
          <p>
            {texts.line(calendarDay(line.booked_on))}{" "}
            <strong class="numbers">{money(line.amount, line.currency)}</strong>{" "}
            <span class="soft">{line.provider_reference}</span>
          </p>
          <ul class="stack-tight">
            {candidates.map((candidate) => (
              <CandidateCard
                key={candidate.payment.payment_key}
                candidate={candidate}
                onDecide={(isConfirmed) => {
                  asked.value = { lineId: line.line_id, paymentKeys: [keyOf(candidate)], isConfirmed };
                }}
              />
            ))}
          </ul>
          {areOneGroup(candidates) && (
            <div class="row">
              <Button
                kind="main"
                onClick={() => {
                  asked.value = { lineId: line.line_id, paymentKeys: candidates.map(keyOf), isConfirmed: true };
                }}
              >
                {texts.confirmTogether(candidates.length)}
              </Button>
            </div>
          )}
        </div>
      ))}
      {asked.value !== null && (
        <MatchQuestion
          asked={asked.value}
          onClose={() => {
            asked.value = null;
          }}
        />
      )}
    </section>
  );
}

interface CardProps {
  readonly candidate: Candidate;
  readonly onDecide: (isConfirmed: boolean) => void;
}

function CandidateCard({ candidate: { payment, score, explanation }, onDecide }: CardProps) {
  const texts = words().candidates;
  const { amount, currency, settled_at: settledAt, order_display_number: order, station_id: station } = payment;
  const isPart = explanation["payments"] !== undefined || explanation["lines"] !== undefined;
  return (
    <li class="candidate card stack-tight">
      <div class="row row-spread">
        <strong class="numbers">{amount !== null && currency !== null ? money(amount, currency) : "–"}</strong>
        <span class="numbers">{texts.score(score)}</span>
      </div>
      <div class="score" role="img" aria-label={texts.score(score)}>
        <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
          <rect class="score-ground" width="100" height="4" />
          <rect class="score-part" width={score} height="4" />
        </svg>
      </div>
      <p class="small soft">
        {[
          order === null || station === null ? "" : words().orderAt(order, stationName(station)),
          payment.route === null ? "" : words().routes(payment.route),
          settledAt === null ? "" : dateAndTime(settledAt),
          payment.reference ?? "",
        ]
          .filter((part) => part !== "")
          .join(" · ")}
      </p>
      <ul class="points">
        {Object.entries(explanation).map(([name, value]) => (
          <li key={name} class="small">
            {texts.explain(name, String(value))}
          </li>
        ))}
      </ul>
      {explanation["lines"] !== undefined && <p class="small">{texts.linesTogether}</p>}
      <div class="row">
        {!isPart && (
          <Button kind="main" onClick={() => onDecide(true)}>
            {texts.confirm}
          </Button>
        )}
        <Button onClick={() => onDecide(false)}>{texts.reject}</Button>
      </div>
    </li>
  );
}

function MatchQuestion({ asked, onClose }: { readonly asked: Asked; readonly onClose: () => void }) {
  const texts = words().candidates;
  const { lineId, paymentKeys, isConfirmed } = asked;
  const confirm = paymentKeys.length > 1 ? texts.confirmTogether(paymentKeys.length) : texts.confirm;
  return (
    <WithReason
      title={isConfirmed ? texts.confirmTitle : texts.rejectTitle}
      action={isConfirmed ? confirm : texts.reject}
      onConfirm={(reason) => decideMatch({ lineId, paymentKeys, reason }, isConfirmed)}
      onClose={onClose}
    >
      <p>{texts.afterwards}</p>
    </WithReason>
  );
}
