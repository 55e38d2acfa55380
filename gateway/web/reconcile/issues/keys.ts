/** Keyboard shortcuts: one key for each step, while no field or dialog has the focus. */
import { takeOffer, toast } from "../../shared/toasts.tsx";
import { person } from "../known.ts";
import { words } from "../words.ts";
import { assign, openDialog, orSayWhy, undoClosing } from "./actions.ts";
import { chosenId, details, issues, step } from "./issue-list.ts";

export const KEYS = ["j", "k", "c", "a", "p", "t", "m", "u", "?"] as const;
type Key = (typeof KEYS)[number];

/** The chosen issue; from the list until its details have loaded. */
function chosenIssue() {
  const id = chosenId();
  const known = details.peek()?.issue;
  return known?.issue_id === id ? known : issues.peek()?.find(({ issue_id }) => issue_id === id);
}

const isDecided = (): boolean => {
  const issue = chosenIssue();
  return issue !== undefined && issue.status !== "open" && issue.status !== "assigned";
};

function move(by: 1 | -1): void {
  // A dialog that has not appeared yet belongs to the previous issue.
  openDialog.value = null;
  step(by);
}

const PRESSED: Readonly<Record<Key, () => void>> = {
  j: () => move(1),
  k: () => move(-1),
  c: () => open("close"),
  a: () => void assignToMe(),
  p: () => open("assign"),
  t: () => open("attribute"),
  m: () => open("comment"),
  u: () => {
    const issue = chosenIssue();
    if (issue?.status === "closed") void undoClosing(issue.issue_id);
    else takeOffer();
  },
  "?": () => {
    openDialog.value = "help";
  },
};

/** Opens a dialog. It appears when the details have loaded, so that a fast person need not wait before pressing the key. */
function open(dialog: "close" | "assign" | "attribute" | "comment"): void {
  if (chosenId() === 0) return toast(words().keys.chooseFirst);
  if (dialog !== "comment" && isDecided()) return toast(words().keys.decided);
  openDialog.value = dialog;
}

async function assignToMe(): Promise<void> {
  const issue = chosenIssue();
  const me = person.peek();
  if (issue === undefined) return toast(words().keys.chooseFirst);
  if (me && !isDecided() && issue.assignee_id !== me.user_id) await orSayWhy(assign(issue, me.user_id));
}

function listen(event: KeyboardEvent): void {
  const { target } = event;
  const isAsking = openDialog.peek() === "help" || openDialog.peek() === "bulk" || details.peek() !== undefined;
  if (event.ctrlKey || event.metaKey || event.altKey || (openDialog.peek() !== null && isAsking)) return;
  if (target instanceof HTMLElement && target.closest("input, select, textarea, dialog, [role=dialog]")) return;
  const press = (PRESSED as Partial<Record<string, () => void>>)[event.key];
  if (press === undefined) return;
  event.preventDefault();
  press();
}

export function listenToKeys(): () => void {
  document.addEventListener("keydown", listen);
  return () => document.removeEventListener("keydown", listen);
}
