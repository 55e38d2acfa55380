/** The commands of periods, their closings, and the report of a day. */
import { createWriteStream } from "node:fs";
import { finished } from "node:stream/promises";
import { z } from "zod";
import { CommandError, UsageError } from "../command.ts";
import { idOf, print, printJson, queryOf, required, type Work } from "../person.ts";

type PeriodOptions = { readonly json?: boolean | undefined; readonly month?: boolean | undefined } & {
  readonly [name in
    | "account"
    | "filial"
    | "from"
    | "to"
    | "reason"
    | "file"
    | "day"
    | "mode"
    | "starts-at"
    | "time-zone"]?: string | undefined;
};

const periodsSchema = z.looseObject({
  periods: z.array(
    z.looseObject({
      account_id: z.int(),
      from_date: z.string(),
      state: z.string(),
      missing: z.array(z.looseObject({ code: z.string(), count: z.int() })),
      closing_id: z.int().nullable(),
    }),
  ),
  has_more: z.boolean(),
});
const closingSchema = z.looseObject({ closing_id: z.int(), lines: z.int(), issues: z.int() });
const rowsSchema = z.looseObject({
  rows: z.array(z.looseObject({ key: z.string(), row: z.string() })),
  has_more: z.boolean(),
});
const sumSchema = z.looseObject({ count: z.int(), amount: z.string() });
const reportSchema = z.looseObject({
  day: z.string(),
  time_zone: z.string(),
  totals: z.array(
    z.looseObject({
      currency: z.string(),
      settled: z.record(z.string(), sumSchema),
      statement: z.record(z.string(), sumSchema),
      tips: sumSchema,
      open_differences: z.looseObject({
        kinds: z.array(z.looseObject({ kind: z.string(), ...sumSchema.shape })),
        total: sumSchema,
      }),
    }),
  ),
  open_without_amount: z.array(z.looseObject({ kind: z.string(), count: z.int() })),
});

/** Throws `UsageError`. */
export function periodWork([command, subject, surplus]: readonly string[], options: PeriodOptions): Work {
  if (surplus !== undefined) throw new UsageError(`There is one argument too many, "${surplus}"; see --help.`);
  const kind = options.month === true ? "month" : "day";
  switch (command) {
    case "list":
      return listPeriods(kind, options);
    case "close":
      return closePeriod(kind, options);
    case "export":
      return exportClosing(idOf(subject, "the closing"), required(options.file, "--file"));
    case undefined:
    default:
      throw new UsageError("Use period list, period close or period export; see --help.");
  }
}

const optionalId = (text: string | undefined, name: string): number | undefined =>
  text === undefined ? undefined : idOf(text, name);

function listPeriods(kind: string, { account, filial, from, to, json }: PeriodOptions): Work {
  const query = queryOf({
    kind,
    from_date: required(from, "--from"),
    to_date: required(to, "--to"),
    account_id: optionalId(account, "--account"),
    filial_id: optionalId(filial, "--filial"),
  });
  return async ({ read }) => {
    const answer = await read(`periods/${query}`, periodsSchema);
    if (json === true) return printJson(answer);
    if (answer.periods.length === 0) print("There is no such period.");
    else print("account\tday\tstate\tclosing, or what it lacks");
    for (const { account_id: id, from_date: day, state, missing, closing_id: closingId } of answer.periods) {
      const lacks = missing.map(({ code, count }) => `${code} ${count}`).join(", ");
      print(`${id}\t${day}\t${state}\t${closingId === null ? lacks : `closing ${closingId}`}`);
    }
    if (answer.has_more) print("There are more: name an account, or fewer days.");
  };
}

function closePeriod(kind: string, { account, from, reason, json }: PeriodOptions): Work {
  const which = { account_id: idOf(account, "--account"), kind, from_date: required(from, "--from") };
  const body = { ...which, reason: required(reason, "--reason") };
  return async ({ act }) => {
    const closing = await act("periods/close/", body, closingSchema);
    if (json === true) return printJson(closing);
    print(`Closing ${closing.closing_id} has ${closing.lines} lines and ${closing.issues} issues.`);
  };
}

/** Reads the head first, so that a missing closing leaves no file. */
function exportClosing(closingId: number, path: string): Work {
  return async ({ read }) => {
    const pageAfter = (since: string | undefined) =>
      read(`closings/${closingId}/rows/${queryOf({ since_key: since })}`, rowsSchema);
    let page = await pageAfter(undefined);
    const file = createWriteStream(path, { flags: "wx" });
    const written = finished(file);
    // `written` is awaited below; this prevents an unhandled rejection before that.
    written.catch(() => undefined);
    let rows = 0;
    for (;;) {
      for (const { row } of page.rows) {
        file.write(rows === 0 ? row : `\n${row}`);
        rows += 1;
      }
      const last = page.rows.at(-1)?.key;
      if (!page.has_more || last === undefined) break;
      page = await pageAfter(last);
    }
    file.end();
    await written.catch((error: unknown) => {
      throw new CommandError(`The file ${path} cannot be written; name one that does not exist yet.`, { cause: error });
    });
    print(`${path} has ${rows} rows; verify it with: node clients/verify-closing.mjs ${path} --key PUBLIC_KEY`);
  };
}

/** Throws `UsageError`. */
export function reportDay(options: PeriodOptions): Work {
  const { filial, day, mode, "starts-at": startsAt, "time-zone": timeZone, json } = options;
  const query = queryOf({
    filial_id: idOf(filial, "--filial"),
    day: required(day, "--day"),
    mode,
    starts_at: startsAt,
    time_zone: timeZone,
  });
  return async ({ read }) => {
    const report = await read(`day-report/${query}`, reportSchema);
    if (json === true) return printJson(report);
    print(`The day ${report.day} in the time zone ${report.time_zone}:`);
    if (report.totals.length === 0) print(`Nothing was settled or booked on ${report.day}.`);
    else print("currency\tpart\tcount\tamount");
    for (const { currency, settled, statement, tips, open_differences: open } of report.totals) {
      const show = (part: string, { count, amount }: z.infer<typeof sumSchema>): void =>
        print(`${currency}\t${part}\t${count}\t${amount}`);
      for (const [name, sum] of Object.entries(settled)) show(`settled ${name}`, sum);
      for (const [name, sum] of Object.entries(statement)) show(`statement ${name}`, sum);
      show("tips", tips);
      for (const { kind, ...sum } of open.kinds) show(`open ${kind}`, sum);
      show("open differences", open.total);
    }
    for (const { kind, count } of report.open_without_amount) print(`-\topen ${kind}\t${count}\t-`);
  };
}
