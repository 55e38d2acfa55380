/**
 * Runs reconciliation, lists its issues, and decides them.
 *
 *   npm run recon -- --help
 */
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { CommandError, endWithError, parseCommandLine, UsageError } from "./command.ts";
import { ServiceError } from "./http/transport.ts";
import { clientLimits } from "./limits.ts";
import {
  ACCESS_OPTIONS,
  accessHelp,
  asPerson,
  idOf,
  print,
  printJson,
  queryOf,
  refuseOthers,
  required,
  type Work,
} from "./person.ts";
import { ATTRIBUTE_HELP, ATTRIBUTE_OPTIONS, attribute } from "./reconciliation/attribute.ts";
import { periodWork, reportDay } from "./reconciliation/periods.ts";

const HELP = `Compares statements with settled payments, by the API of reconciliation.

  npm run recon -- run --account ID
      Starts a run and waits until it is done; --from and --to name booking days
  npm run recon -- issues
      Lists the issues that wait for a decision, the newest first
      --kind KIND, --status STATUS, --account KEY     only those, such as statement:3
      --before ID                                     the page after this issue
  npm run recon -- close ISSUE --reason TEXT
  npm run recon -- close --kind KIND --reason TEXT    all of a kind; --account KEY;
      --through ID leaves the newer ones open
  npm run recon -- undo ISSUE [ISSUE …]
      Undoes your closing of these issues, within a day
${ATTRIBUTE_HELP}  npm run recon -- period list --from DAY --to DAY
      Lists the days of each account, and what each closing needs; --account ID,
      --filial ID, --month for months
  npm run recon -- period close --account ID --from DAY --reason TEXT
      Closes a day for good, or with --month the month that begins on that day
  npm run recon -- period export CLOSING --file FILE
      Writes a closing as a file that clients/verify-closing.mjs verifies offline
  npm run recon -- report --filial ID --day DAY
      Reports one day of a filial; --mode test, --starts-at 05:00,
      --time-zone Europe/Berlin when the accounts name none or several

${accessHelp("operator")}`;

const OPTIONS = {
  ...ACCESS_OPTIONS,
  ...ATTRIBUTE_OPTIONS,
  account: { type: "string" },
  from: { type: "string" },
  to: { type: "string" },
  kind: { type: "string" },
  status: { type: "string" },
  before: { type: "string" },
  through: { type: "string" },
  reason: { type: "string" },
  filial: { type: "string" },
  month: { type: "boolean" },
  day: { type: "string" },
  mode: { type: "string" },
  "starts-at": { type: "string" },
  "time-zone": { type: "string" },
  file: { type: "string" },
} as const;

type Options = ReturnType<typeof parseCommandLine<typeof OPTIONS>>["values"];

/** The options of each command. */
const USED: Readonly<Record<string, readonly (keyof Options)[]>> = {
  run: ["account", "from", "to"],
  issues: ["kind", "status", "account", "before"],
  "close ISSUE": ["reason"],
  close: ["kind", "account", "through", "reason"],
  undo: [],
  attribute: ["order", "confirm", "reject", "withdraw", "reason"],
  "period list": ["from", "to", "account", "filial", "month"],
  "period close": ["account", "from", "month", "reason"],
  "period export": ["file"],
  report: ["filial", "day", "mode", "starts-at", "time-zone"],
};

const runSchema = z.looseObject({
  run_id: z.int(),
  status: z.string(),
  failure: z.string().nullable(),
  lines: z.int(),
  matched: z.int(),
  differing: z.int(),
  rejected: z.int(),
  differences: z.int(),
  totals: z.array(
    z.looseObject({
      currency: z.string(),
      total: z.string(),
      matched: z.string(),
      differing: z.string(),
      rejected: z.string(),
    }),
  ),
});
const issueSchema = z.looseObject({
  issue_id: z.int(),
  kind: z.string(),
  status: z.string(),
  account: z.string(),
  amount: z.string().nullable(),
  currency: z.string().nullable(),
  age_days: z.int(),
});
const issuesSchema = z.looseObject({ issues: z.array(issueSchema), has_more: z.boolean() });
const refusedSchema = z.array(z.looseObject({ issue_id: z.int(), reason: z.string() }));
const closedSchema = z.looseObject({ closed_ids: z.array(z.int()), refused: refusedSchema, has_more: z.boolean() });
const undoneSchema = z.looseObject({
  reopened: z.int(),
  refused: refusedSchema,
  remaining_ids: z.array(z.int()),
});

/** Checks the arguments before the log-in, and returns the work that they ask for. Throws `UsageError`. */
function workOf(words: readonly string[], options: Options): Work {
  const [command = "", subject, surplus] = words;
  const form =
    command === "period" ? `period ${subject}` : command === "close" && subject !== undefined ? "close ISSUE" : command;
  refuseOthers(form, options, USED[form] ?? Object.keys(options));
  if (command === "period") return periodWork(words.slice(1), options);
  if (command === "undo") return undo(words.slice(1), options);
  if (surplus !== undefined) throw new UsageError(`There is one argument too many, "${surplus}"; see --help.`);
  switch (command) {
    case "run":
      return run(idOf(options.account, "--account"), options);
    case "issues":
      return listIssues(options);
    case "close":
      return subject === undefined ? closeAll(options) : close(idOf(subject, "the issue"), options);
    case "report":
      return reportDay(options);
    case "attribute":
      return attribute(idOf(subject, "the issue"), options);
    default:
      throw new UsageError("Use run, issues, close, undo, attribute, period or report; see --help.");
  }
}

function run(accountId: number, { from, to, json }: Options): Work {
  const body = { account_id: accountId, from_date: from, to_date: to };
  return async ({ act, read, signal }) => {
    let now = await begin(() => act("runs/", body, runSchema), signal);
    while (now.status !== "done" && now.status !== "failed") {
      await delay(clientLimits.progressPollMs, undefined, { signal });
      now = await read(`runs/${now.run_id}/`, runSchema);
    }
    if (json === true) printJson(now);
    if (now.status === "failed") throw new CommandError(now.failure ?? `Run ${now.run_id} has failed.`);
    if (json === true) return;
    const { run_id: id, lines, matched, differing, rejected, differences } = now;
    print(`Run ${id} is done. Lines: ${lines}, matched: ${matched}, differing: ${differing}, rejected: ${rejected}.`);
    for (const sum of now.totals)
      print(
        `${sum.currency}\tlines ${sum.total} = matched ${sum.matched} + differing ${sum.differing} + rejected ${sum.rejected}`,
      );
    print(`Differences: ${differences}. List the open issues with: npm run recon -- issues`);
  };
}

/** Starts a run. While another run of the account is active, such as the one after an import, it tries again. */
async function begin<T>(start: () => Promise<T>, signal: AbortSignal): Promise<T> {
  const deadlineMs = performance.now() + clientLimits.runWaitMs;
  for (;;) {
    try {
      return await start();
    } catch (error) {
      const isUnderWay = error instanceof ServiceError && error.reason === "run_under_way";
      if (!isUnderWay || performance.now() > deadlineMs) throw error;
      await delay(clientLimits.progressPollMs, undefined, { signal });
    }
  }
}

function listIssues({ kind, status, account, before, json }: Options): Work {
  const fields = { kind, status, account, before_id: before, limit: clientLimits.listedRows };
  const query = queryOf(status === undefined ? { ...fields, decision: "pending" } : fields);
  return async ({ read }) => {
    const answer = await read(`issues/${query}`, issuesSchema);
    if (json === true) return printJson(answer);
    if (answer.issues.length === 0)
      print(status === undefined ? "No such issue waits for a decision." : "There is no such issue.");
    else print("issue\tkind\tstatus\tamount\taccount\tage");
    for (const {
      issue_id: id,
      kind: name,
      status: state,
      account: key,
      amount,
      currency,
      age_days: days,
    } of answer.issues)
      print(`${id}\t${name}\t${state}\t${amount ?? "?"} ${currency ?? ""}\t${key}\t${days} d`);
    if (answer.has_more) print(`There are more: --before ${answer.issues.at(-1)?.issue_id}`);
  };
}

function close(issueId: number, { reason, json }: Options): Work {
  const body = { reason: required(reason, "--reason") };
  return async ({ act }) => {
    const answer = await act(`issues/${issueId}/close/`, body, issueSchema);
    if (json === true) return printJson(answer);
    print(`Issue ${issueId} is ${answer.status}.`);
  };
}

function undo(issues: readonly string[], { json }: Options): Work {
  const [first, ...others] = issues;
  const issueId = idOf(first, "the issue");
  if (others.length > 0) return undoAll([issueId, ...others.map((other) => idOf(other, "the issue"))], json === true);
  return async ({ act }) => {
    const answer = await act(`issues/${issueId}/undo/`, {}, issueSchema);
    if (json === true) return printJson(answer);
    print(`Issue ${issueId} is ${answer.status}.`);
  };
}

/** Prints one answer, also where the service has needed several requests. */
function undoAll(issueIds: readonly number[], isJson: boolean): Work {
  return async ({ act }) => {
    let answer = await act("issues/undo/", { issue_ids: issueIds }, undoneSchema);
    while (answer.remaining_ids.length > 0) {
      const next = await act("issues/undo/", { issue_ids: answer.remaining_ids }, undoneSchema);
      const reopened = answer.reopened + next.reopened;
      answer = { ...next, reopened, refused: [...answer.refused, ...next.refused] };
    }
    const { reopened, refused } = answer;
    if (isJson) printJson(answer);
    else print(`${reopened} issues wait for a decision.`);
    if (!isJson) printRefused(refused, "is not reopened");
    if (refused.length > 0) throw new CommandError(`${refused.length} of ${issueIds.length} issues are not reopened.`);
  };
}

function printRefused(refused: z.infer<typeof refusedSchema>, outcome: string): void {
  for (const { issue_id: id, reason } of refused) print(`Issue ${id} ${outcome}: ${reason}.`);
}

function closeAll({ kind, account, through, reason, json }: Options): Work {
  const filter = { kind: required(kind, "an issue or --kind"), account };
  const body = {
    filter,
    reason: required(reason, "--reason"),
    ...(through === undefined ? {} : { through_id: idOf(through, "--through") }),
  };
  return async ({ act }) => {
    const answer = await act("issues/close/", body, closedSchema);
    const { closed_ids: closedIds, refused, has_more: hasMore } = answer;
    if (json === true) printJson(answer);
    else {
      print(`${closedIds.length} issues are closed.`);
      printRefused(refused, "is not closed");
      if (hasMore) print("More issues match: repeat the command.");
      if (closedIds.length > 0) print(`To undo this within a day: npm run recon -- undo ${closedIds.join(" ")}`);
    }
    if (refused.length > 0) throw new CommandError(`${refused.length} issues are not closed.`);
  };
}

try {
  const { values, positionals } = parseCommandLine(process.argv.slice(2), OPTIONS);
  if (values.help === true) process.stdout.write(HELP);
  else await asPerson("operator", values, workOf(positionals, values));
} catch (error) {
  endWithError(error);
}
