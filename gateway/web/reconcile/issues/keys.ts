/** Triage by keyboard: one key for each step, while no field or dialog has the focus. */
import { toast } from "../../shared/toasts.tsx";
import { person } from "../known.ts";
import { words } from "../words.ts";
import { assign, openDialog, undoClosing } from "./actions.ts";
import { details, step } from "./issue-list.ts";

export const KEYS = ["j", "k", "c", "a", "p", "t", "m", "u", "?"] as const;
type Key = (typeof KEYS)[number];

const isWaiting = (): boolean => {
  const status = details.peek()?.issue.status;
  return status === "open" || status === "assigned";
};

const PRESSED: Readonly<Record<Key, () => void>> = {
  j: () => step(1),
  k: () => step(-1),
  c: () => open("close"),
  a: () => void takeOver(),
  p: () => open("assign"),
  t: () => open("attribute"),
  m: () => open("comment"),
  u: () => {
    const issue = details.peek()?.issue;
    if (issue?.status === "closed") void undoClosing(issue.issue_id);
  },
  "?": () => {
    openDialog.value = "help";
  },
};

function open(dialog: "close" | "assign" | "attribute" | "comment"): void {
  if (details.peek() === undefined) return toast(words().keys.chooseFirst);
  if (dialog !== "comment" && !isWaiting()) return toast(words().keys.decided);
  openDialog.value = dialog;
}

async function takeOver(): Promise<void> {
  const issue = details.peek()?.issue;
  const me = person.peek();
  if (issue === undefined) return toast(words().keys.chooseFirst);
  if (me && isWaiting() && issue.assignee_id !== me.user_id) await assign(issue, me.user_id);
}

export function listenToKeys(): () => void {
  const listen = (event: KeyboardEvent): void => {
    const { target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || openDialog.peek() !== null) return;
    if (target instanceof HTMLElement && target.closest("input, select, textarea, dialog, [role=dialog]")) return;
    const press = (PRESSED as Partial<Record<string, () => void>>)[event.key];
    if (press === undefined) return;
    event.preventDefault();
    press();
  };
  document.addEventListener("keydown", listen);
  return () => document.removeEventListener("keydown", listen);
}
