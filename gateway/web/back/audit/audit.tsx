/** The audit logs. The text filter searches a whole log; for a station it searches only the entries that are loaded. */
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { call, type Result } from "../../shared/call.ts";
import { dateAndClockTime } from "../../shared/format.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { Empty } from "../../shared/states.tsx";
import { Table } from "../../shared/table.tsx";
import { useLoad } from "../../shared/use-load.ts";
import { ChoiceFilter, EmptyList, FilterBar, type Filters, TextFilter, useFilters } from "../shell/filters.tsx";
import { SectionHead } from "../shell/frame.tsx";
import { allPages, LARGEST_PAGE, Listed, mapReply, type Page, pageOf, usePages } from "../shell/loading.tsx";
import { usePlaces } from "../shell/places.ts";
import { shellWords } from "../shell/words.ts";
import { actionText, actorKindText, thingText } from "./log-words.ts";
import { words } from "./words.ts";

/** An entry of any of the logs. */
interface Entry {
  readonly id: number;
  readonly key: string;
  readonly at: string;
  readonly actor: LogEvent["actor"];
  readonly action: string;
  /** Null when the entry concerns only the station itself. */
  readonly subject: LogEvent["subject"] | null;
  readonly data: Readonly<Record<string, unknown>>;
}

interface LogEvent {
  readonly event_id: number;
  readonly at: string;
  readonly actor: { readonly kind: string; readonly name: string };
  readonly action: string;
  readonly subject: { readonly kind: string; readonly id: number };
  readonly data: Readonly<Record<string, unknown>>;
}

const LOGS = ["organization", "providers", "robotics", "station"] as const;
type LogName = (typeof LOGS)[number];
/** Parts of the address that choose the log. They are no filters: clearing the filters keeps them. */
const VIEWS = ["log", "station"];
const EVERY_MS = 15_000;
const LIMIT = 100;

function whoOf({ kind, name }: LogEvent["actor"]): string {
  // The service names the operator of the installation only "operator".
  return name === "" || (kind === "platform" && name === "operator")
    ? actorKindText(kind)
    : `${name} (${actorKindText(kind)})`;
}
const subjectOf = (subject: Entry["subject"]): string =>
  subject === null ? "" : `${thingText(subject.kind)} ${subject.id}`;

type User = ReplyOf<"GET /api/backoffice/v1/users/">["users"][number];

/** The people of the organization, because an entry about a person has only the id. */
const allUsers = (): Promise<Result<readonly User[]>> =>
  allPages((since_id) =>
    mapReply(call("GET /api/backoffice/v1/users/", { query: { since_id, limit: LARGEST_PAGE } }), (reply) =>
      pageOf(reply.users, reply.has_more, (user) => user.user_id),
    ),
  );

const entryOf = (event: LogEvent): Entry => ({
  id: event.event_id,
  key: String(event.event_id),
  at: event.at,
  actor: event.actor,
  action: event.action,
  subject: event.subject,
  data: event.data,
});

type Answer = Promise<Result<{ readonly events: readonly LogEvent[]; readonly through_id: number | null }>>;
type Cursor = string | number | undefined;

/** The service searches one part of the log per request. Requests the next part until one has an entry or the text changes. */
async function entries(
  ask: (before_id: Cursor) => Answer,
  cursor: Cursor,
  isWanted: () => boolean,
): Promise<Result<Page<Entry>>> {
  for (let before = cursor; ; ) {
    const result = await ask(before);
    if (!result.ok) return result;
    const { events, through_id } = result.reply;
    if (events.length > 0 || through_id === null || !isWanted())
      return { ...result, reply: { items: events.map(entryOf), next: through_id } };
    before = through_id;
  }
}

/** A station's events are ordered by version, oldest first. */
function stationEntries(stationId: number, since_version: Cursor): Promise<Result<Page<Entry>>> {
  const request = { path: { station_id: stationId }, query: { since_version, limit: LIMIT } };
  return mapReply(call("GET /api/backoffice/v1/stations/{station_id}/events/", request), ({ events, has_more }) =>
    pageOf(
      events.map((event) => ({
        id: event.version,
        key: `${event.version} ${event.ordinal}`,
        at: event.at,
        actor: event.actor,
        action: event.type,
        subject: event.intent_id === null ? null : { kind: "payment", id: event.intent_id },
        data: event.data,
      })),
      has_more,
      ({ id }) => id,
    ),
  );
}

interface Wanted {
  readonly log: LogName;
  readonly stationId: number;
  readonly text: string;
}

const PATHS = {
  organization: "GET /api/backoffice/v1/events/",
  providers: "GET /api/backoffice/v1/provider-events/",
  robotics: "GET /api/backoffice/v1/robotics-events/",
} as const;

function load({ log, stationId, text }: Wanted, cursor: Cursor, isWanted: () => boolean): Promise<Result<Page<Entry>>> {
  if (log === "station") return stationEntries(stationId, cursor);
  const search = text === "" ? undefined : text;
  return entries((before_id) => call(PATHS[log], { query: { search, before_id, limit: LIMIT } }), cursor, isWanted);
}

export function Audit() {
  const filters = useFilters(VIEWS);
  const { query } = filters;
  const log = LOGS.find((name) => name === query.log) ?? "organization";
  const places = usePlaces();
  const needsStation = log === "station" && !(Number(query.station) > 0);
  return (
    <>
      <SectionHead name="audit" intro={words().intro} />
      <FilterBar filters={filters}>
        <ChoiceFilter
          filters={filters}
          name="log"
          label={words().log}
          all={words().logs.organization}
          options={LOGS.filter((name) => name !== "organization").map((value) => ({
            value,
            text: words().logs[value],
          }))}
        />
        {log === "station" && (
          <ChoiceFilter
            filters={filters}
            name="station"
            label={shellWords().station}
            all="–"
            options={places.data?.stationOptions() ?? []}
          />
        )}
        <TextFilter filters={filters} name="text" label={words().who_filter} />
      </FilterBar>
      {needsStation ? (
        <Empty title={words().chooseStation} />
      ) : (
        <Log
          key={`${log} ${query.station}`}
          log={log}
          stationId={Number(query.station)}
          text={query.text ?? ""}
          filters={filters}
        />
      )}
    </>
  );
}

function What({ action }: { readonly action: string }) {
  const { text, own } = actionText(action);
  return (
    <>
      <strong>{text}</strong>
      {own !== null && (
        <div class="small soft" lang="en">
          {own}
        </div>
      )}
    </>
  );
}

function aboutCell(subject: Entry["subject"], users: readonly User[] | null): ComponentChildren {
  const user = subject?.kind === "user" ? users?.find(({ user_id }) => user_id === subject.id) : undefined;
  if (user === undefined) return subjectOf(subject);
  return (
    <>
      {user.name}
      <div class="small soft">
        {subjectOf(subject)} · {user.email}
      </div>
    </>
  );
}

function Log({ log, stationId, text, filters }: Wanted & { readonly filters: Filters }) {
  const isStation = log === "station";
  const users = useLoad("people", allUsers);
  const newestText = useRef(text);
  newestText.current = text;
  const found = usePages(
    `log ${log} ${stationId} ${isStation ? "" : text}`,
    (cursor) => load({ log, stationId, text }, cursor, () => newestText.current === text),
    // The page does not repeat a search by itself: a long log makes it expensive.
    text === "" ? EVERY_MS : undefined,
  );
  const wanted = isStation ? text.toLowerCase() : "";
  const isWanted = (entry: Entry): boolean =>
    wanted === "" ||
    `${whoOf(entry.actor)} ${actionText(entry.action).text} ${entry.action.split("_").join(" ")} ${subjectOf(entry.subject)} ${JSON.stringify(entry.data)}`
      .toLowerCase()
      .includes(wanted);
  const empty = <EmptyList filters={filters} title={words().empty} text={words().emptyText} />;
  return (
    <>
      {wanted !== "" && <p class="small soft">{words().searched}</p>}
      <Listed of={found} empty={empty}>
        {(all) => {
          const rows = all.filter(isWanted);
          if (rows.length === 0) return empty;
          return (
            <Table
              caption={shellWords().nav.audit}
              rows={rows}
              keyOf={(entry) => entry.key}
              columns={[
                { title: words().at, cell: (entry) => <span class="nowrap">{dateAndClockTime(entry.at)}</span> },
                { title: words().who, cell: (entry) => whoOf(entry.actor) },
                { title: words().what, cell: (entry) => <What action={entry.action} /> },
                { title: words().subject, cell: ({ subject }) => aboutCell(subject, users.data) },
                {
                  title: words().data,
                  cell: (entry) =>
                    Object.keys(entry.data).length > 0 && (
                      <details>
                        <summary>{words().show}</summary>
                        <pre>{JSON.stringify(entry.data, null, 2)}</pre>
                      </details>
                    ),
                },
              ]}
            />
          );
        }}
      </Listed>
    </>
  );
}
