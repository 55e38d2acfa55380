/** The questions before a decision. Each text says what the decision does and what it does not do. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Button } from "../../shared/button.tsx";
import { Dialog as Box, Question, useIsOpen } from "../../shared/dialog.tsx";
import type { Failure } from "../../shared/failures.ts";
import { Choice } from "../../shared/field.tsx";
import { money } from "../../shared/format.ts";
import { sharedWords } from "../../shared/words.ts";
import { kindTitle } from "../kind-words.ts";
import { operators, orderText } from "../known.ts";
import { Refusal, toastRefusal } from "../refusal.tsx";
import { WithReason } from "../with-reason.tsx";
import { words } from "../words.ts";
import { assign, closeIssue, comment, decideProposal, openDialog } from "./actions.ts";
import { Attribute } from "./attribute.tsx";
import { closeAll, type Outcome, reportClosed } from "./bulk-closing.ts";
import { bulkFilter, filterCount, view } from "./filter.ts";
import { details, type IssueDetails, issues, overview } from "./issue-list.ts";
import { KEYS } from "./keys.ts";

const close = (): void => {
  openDialog.value = null;
};

export function Dialogs() {
  const known = details.value;
  switch (openDialog.value) {
    case "help":
      return <Help />;
    case "bulk":
      return <Bulk />;
    case "close":
      return known && <Close known={known} />;
    case "attribute":
      return known && <Attribute known={known} onClose={close} />;
    case "assign":
      return known && <Assign known={known} />;
    case "comment":
      return known && <Comment known={known} />;
    case "confirm_proposal":
      return known && <ConfirmProposal known={known} />;
    case "reject_proposal":
      return known && <RejectProposal known={known} />;
    case null:
      return null;
  }
}

interface OfIssue {
  readonly known: IssueDetails;
}

/** The issue as it was when the dialog opened. A refresh of the page must not change what a question is about. */
const useSeen = ({ known }: OfIssue): IssueDetails => useSignal(known).peek();

function Close(props: OfIssue) {
  const { issue } = useSeen(props);
  const texts = words().close;
  return (
    <WithReason
      onClose={close}
      title={texts.title(kindTitle(issue.kind))}
      action={words().actions.close}
      onConfirm={(reason) => closeIssue(issue, reason)}
    >
      <p>{texts.help}</p>
    </WithReason>
  );
}

/** A confirmation pays an order and cannot be undone, so the page asks first. */
function ConfirmProposal(props: OfIssue) {
  const { issue, orders } = useSeen(props);
  const failure = useSignal<Failure | null>(null);
  const isOpen = useIsOpen();
  const { amount, currency, proposal } = issue;
  const confirm = async (): Promise<void> => {
    failure.value = await decideProposal(issue, "confirm");
    if (failure.value === null && isOpen()) close();
  };
  if (proposal === null) return null;
  const texts = words().proposal;
  return (
    <Question
      title={texts.title(proposal.proposed_by_name, orderText(orders, proposal.order_id))}
      action={texts.confirm}
      isDangerous
      onConfirm={confirm}
      onClose={close}
    >
      <p>{amount !== null && currency !== null ? words().attribute.help(money(amount, currency)) : ""}</p>
      {failure.value !== null && <Refusal failure={failure.value} />}
    </Question>
  );
}

function RejectProposal(props: OfIssue) {
  const { issue } = useSeen(props);
  const texts = words().proposal;
  return (
    <WithReason
      onClose={close}
      title={texts.rejectTitle}
      action={texts.reject}
      onConfirm={(reason) => decideProposal(issue, "reject", reason)}
    >
      <p>{texts.rejectHelp}</p>
    </WithReason>
  );
}

function Comment({ known: { issue } }: OfIssue) {
  const texts = words().comment;
  return (
    <WithReason
      onClose={close}
      title={texts.title}
      action={texts.action}
      label={texts.label}
      onConfirm={(text, key) => comment(issue.issue_id, text, key)}
    >
      <p>{texts.help}</p>
    </WithReason>
  );
}

function Assign({ known: { issue } }: OfIssue) {
  const chosen = useSignal(issue.assignee_id === null ? "" : String(issue.assignee_id));
  const failure = useSignal<Failure | null>(null);
  const isOpen = useIsOpen();
  const texts = words().assign;
  const confirm = async (): Promise<void> => {
    failure.value = await assign(issue, chosen.peek() === "" ? null : Number(chosen.peek()));
    if (failure.value === null && isOpen()) close();
  };
  return (
    <Question title={texts.title} action={words().actions.assign} onConfirm={confirm} onClose={close}>
      <Choice
        label={texts.person}
        value={chosen.value}
        onChange={(value) => {
          chosen.value = value;
        }}
        options={[
          { value: "", text: texts.anyPerson },
          ...operators.value.map(({ user_id, name }) => ({ value: String(user_id), text: name })),
        ]}
      />
      {failure.value !== null && <Refusal failure={failure.value} />}
    </Question>
  );
}

/** Closes the issues that the list had when the dialog opened. Issues that are added later stay open. */
function Bulk() {
  const seen = useSignal({
    sums: overview.peek()?.sums ?? [],
    filter: bulkFilter(),
    throughId: issues.peek()?.[0]?.issue_id ?? 0,
  });
  /** Null until a request has an answer. A click after a failure goes on, and the toast then names all. */
  const outcome = useSignal<Outcome | null>(null);
  const isRunning = useSignal(false);
  const isOpen = useIsOpen();
  const report = (): void => {
    const known = outcome.peek();
    if (known !== null) reportClosed(known);
  };
  // When the dialog has gone, also by the back button: a toast below it cannot be used.
  useEffect(
    () => () => {
      if (!isRunning.peek()) report();
    },
    [],
  );
  const confirm = async (reason: string): Promise<Failure | null> => {
    isRunning.value = true;
    const failure = await closeAll(reason, seen.peek(), ({ closedIds, refused }) => {
      outcome.value = { closedIds: [...(outcome.peek()?.closedIds ?? []), ...closedIds], refused };
    });
    isRunning.value = false;
    // The person has left the dialog before the last answer.
    if (!isOpen()) {
      report();
      if (failure !== null) toastRefusal(failure);
    }
    return failure;
  };
  const { sums, throughId } = seen.value;
  const count = sums.reduce((all, { count: each }) => all + each, 0);
  const texts = words().bulk;
  return (
    <WithReason
      onClose={close}
      title={texts.title(count)}
      action={texts.action(count)}
      isDangerous
      blockedBecause={throughId === 0 ? texts.none : null}
      onConfirm={confirm}
    >
      <p>{filterCount() > 0 ? texts.filtered(words().views[view()]) : texts.whole(words().views[view()])}</p>
      <ul>
        {sums.map(({ currency, count: each, amount }) => (
          <li key={currency ?? ""} class="numbers">
            {currency === null || amount === null ? words().withoutAmount : money(amount, currency)} ·{" "}
            {words().issueCount(each)}
          </li>
        ))}
      </ul>
      <p>{texts.help}</p>
      <p role="status">{outcome.value === null ? "" : texts.progress(outcome.value.closedIds.length)}</p>
    </WithReason>
  );
}

function Help() {
  return (
    <Box title={words().keys.title} onClose={close}>
      <dl class="keys">
        {KEYS.map((key) => (
          <div key={key} class="key-row">
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{words().keys.what(key)}</dd>
          </div>
        ))}
      </dl>
      <div class="row">
        <Button local kind="main" onClick={close}>
          {sharedWords().close}
        </Button>
      </div>
    </Box>
  );
}
