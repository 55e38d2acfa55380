/** The history of an issue: its steps and the comments. */
import { dateAndTime } from "../../shared/format.ts";
import { operatorName } from "../known.ts";
import { words } from "../words.ts";
import { details } from "./issue-list.ts";

interface Entry {
  readonly key: string;
  readonly at: string;
  readonly who: string;
  readonly what: string;
  readonly text: string;
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

export function History() {
  const known = details.value;
  if (known === undefined) return null;
  const texts = words().history;
  const steps = known.steps.map(({ event_id, at, actor, action, data }): Entry => {
    const who = actor.name === "" ? texts.service : actor.name;
    const assignee = data["assignee_id"];
    const to = typeof assignee === "number" ? operatorName(assignee) : "";
    return { key: `s${event_id}`, at, who, what: texts.action(action), text: textOf(data["reason"]) || to };
  });
  const comments = known.comments.map(
    ({ comment_id, author_name, created_at, text }): Entry => ({
      key: `c${comment_id}`,
      at: created_at,
      who: author_name,
      what: texts.commented,
      text,
    }),
  );
  // oxlint-disable-next-line unicorn/no-array-sort -- the oldest browsers have no toSorted; the list is a new one
  const entries = [...steps.filter(({ what }) => what !== ""), ...comments].sort((a, b) => (a.at < b.at ? 1 : -1));
  return (
    <section class="stack-tight">
      <h3>{texts.title}</h3>
      {entries.length === 0 && <p class="soft">{texts.none}</p>}
      <ul class="history">
        {entries.map(({ key, at, who, what, text }) => (
          <li key={key} class="history-entry">
            <p class="small soft">
              {dateAndTime(at)} · {who} · {what}
            </p>
            {text !== "" && <p class="history-text">{text}</p>}
          </li>
        ))}
      </ul>
    </section>
  );
}
