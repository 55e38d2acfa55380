import { Tag } from "../../shared/states.tsx";
import { operatorName } from "../known.ts";
import { words } from "../words.ts";
import type { Issue } from "./issue-list.ts";

/** Who has the issue, or how it has ended; an open one needs no word. */
export function StatusTag({ issue }: { readonly issue: Issue }) {
  if (issue.proposal !== null) return <Tag tone="warn">{words().proposed}</Tag>;
  if (issue.status === "assigned") return <Tag tone="accent">{operatorName(issue.assignee_id)}</Tag>;
  return issue.status === "open" ? null : <Tag tone="good">{words().statuses[issue.status]}</Tag>;
}
