/**
 * Imports statement files, tests mappings for them, and withdraws imports.
 *
 *   npm run statement -- --help
 */
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { CommandError, endWithError, parseCommandLine, UsageError } from "./command.ts";
import { clientLimits } from "./limits.ts";
import {
  ACCESS_OPTIONS,
  accessHelp,
  allRows,
  asPerson,
  idOf,
  type Person,
  print,
  printJson,
  queryOf,
  refuseOthers,
  required,
  type Work,
} from "./person.ts";
import { createProgress } from "./reconciliation/progress.ts";
import {
  type Declared,
  type Import,
  importSchema,
  untilEnded,
  upload,
  uploadedSchema,
} from "./reconciliation/upload.ts";

const HELP = `Imports statements of providers and banks, by the API of reconciliation.

  npm run statement -- accounts
      Lists the accounts whose statements are imported.
  npm run statement -- import FILE --account ID
      Uploads a file, and waits until it is imported. Name its format with the options
      below. Without them the command lists the possible formats for "confirm":
      --format NAME --encoding NAME   such as camt.053 and utf-8
      --mapping ID                    a stored mapping of CSV, which names the encoding
  npm run statement -- confirm IMPORT   with --format and --encoding, or --mapping
  npm run statement -- list             the newest imports; --account ID for one account,
                                        --before ID for the page after this import
  npm run statement -- preview IMPORT --mapping ID | --definition FILE
      Shows how a mapping reads the first rows; --rows N for N rows
  npm run statement -- mapping list
  npm run statement -- mapping store NAME --definition FILE
      Stores a mapping from a JSON file; --corrects N names the version that it corrects
  npm run statement -- mapping test MAPPING --import IMPORT
      Reads a whole file with a mapping, and stores no line of it
  npm run statement -- release IMPORT --reason TEXT
      Imports a held file after all
  npm run statement -- withdraw IMPORT --reason TEXT
      Withdraws an import: its lines disappear, and its undecided issues end

${accessHelp("operator")}`;

const OPTIONS = {
  ...ACCESS_OPTIONS,
  account: { type: "string" },
  before: { type: "string" },
  format: { type: "string" },
  encoding: { type: "string" },
  mapping: { type: "string" },
  definition: { type: "string" },
  import: { type: "string" },
  rows: { type: "string" },
  corrects: { type: "string" },
  reason: { type: "string" },
} as const;

type Options = ReturnType<typeof parseCommandLine<typeof OPTIONS>>["values"];

/** The options of each command. */
const USED: Readonly<Record<string, readonly (keyof Options)[]>> = {
  accounts: [],
  import: ["account", "format", "encoding", "mapping"],
  confirm: ["format", "encoding", "mapping"],
  list: ["account", "before"],
  preview: ["mapping", "definition", "rows"],
  "mapping list": [],
  "mapping store": ["definition", "corrects"],
  "mapping test": ["import"],
  release: ["reason"],
  withdraw: ["reason"],
};

const accountsSchema = z.looseObject({
  statement_accounts: z.array(
    z.looseObject({ account_id: z.int(), provider: z.string(), reference: z.string(), name: z.string() }),
  ),
  has_more: z.boolean(),
});
const mappingSchema = z.looseObject({ mapping_id: z.int(), name: z.string(), version: z.int() });
const mappingsSchema = z.looseObject({ statement_mappings: z.array(mappingSchema), has_more: z.boolean() });
const refusalSchema = z.looseObject({ detail: z.string() }).nullable();
const previewSchema = z.looseObject({
  refusal: refusalSchema,
  rows: z.array(
    z.looseObject({
      position: z.int(),
      raw: z.string(),
      outcome: z.string(),
      line: z.looseObject({}).nullable(),
      malformed: z.looseObject({ column: z.string(), reason: z.string() }).nullable(),
    }),
  ),
});
const testSchema = z.looseObject({
  test_id: z.int(),
  status: z.string(),
  refusal: refusalSchema,
  lines: z.int(),
  malformed: z.int(),
});
const importsSchema = z.looseObject({ imports: z.array(importSchema), has_more: z.boolean() });

/** Checks the arguments, before the log-in, and returns the work that they ask for. Throws `UsageError`. */
function workOf(words: readonly string[], options: Options): Work {
  const [command = "", ...rest] = words;
  const form = command === "mapping" ? `mapping ${rest[0]}` : command;
  refuseOthers(form, options, USED[form] ?? Object.keys(options));
  if (command === "mapping") return mappingWork(rest, options);
  const [subject, surplus] = rest;
  if (surplus !== undefined) throw new UsageError(`There is one argument too many, "${surplus}"; see --help.`);
  switch (command) {
    case "accounts":
      return listAccounts(options);
    case "import":
      return importFile(required(subject, "the file"), idOf(options.account, "--account"), options);
    case "confirm":
      return confirm(idOf(subject, "the import"), options);
    case "list":
      return list(options);
    case "preview":
      return preview(idOf(subject, "the import"), options);
    case "release":
    case "withdraw":
      return decide(command, idOf(subject, "the import"), options);
    default:
      throw new UsageError("Use accounts, import, confirm, list, preview, mapping, release or withdraw; see --help.");
  }
}

function listAccounts({ json }: Options): Work {
  return async ({ read }) => {
    const accounts = await allRows<z.infer<typeof accountsSchema>["statement_accounts"][number]>(async (last) => {
      const page = await read(`accounts/${queryOf({ since_id: last?.account_id })}`, accountsSchema);
      return [page.statement_accounts, page.has_more];
    });
    if (json === true) return printJson({ statement_accounts: accounts });
    if (accounts.length === 0)
      print("There is no account yet: add one on the page /reconcile/, or with POST /api/reconciliation/v1/accounts/.");
    else print("account\tprovider\treference\tname");
    for (const { account_id: id, provider, reference, name } of accounts)
      print(`${id}\t${provider}\t${reference}\t${name}`);
  };
}

function importFile(path: string, accountId: number, options: Options): Work {
  const declared = declaredIn(options);
  return async (operator) => {
    const file = { path, name: basename(path), accountId, declared };
    const uploaded = await upload(operator, file, createProgress("upload"));
    await follow(operator, uploaded.import_id, options);
  };
}

function declaredIn({ format, encoding, mapping }: Options): Declared {
  return { format, encoding, mappingId: mapping === undefined ? undefined : idOf(mapping, "--mapping") };
}

/** Waits for the end of the import and prints its result. Throws `CommandError` unless it is imported. */
async function follow(operator: Person, importId: number, { json }: Options): Promise<void> {
  const ended = await untilEnded(operator, importId, createProgress("import"));
  if (json === true) printJson(ended);
  else if (ended.status === "imported") print(sentenceOf(ended));
  if (ended.status === "imported") return;
  const { candidates } = ended;
  if (candidates === null) throw new CommandError(sentenceOf(ended));
  if (candidates.refusal !== null) throw new CommandError(candidates.refusal.detail);
  const formats = candidates.formats.map(({ name, title }) => `${name} (${title})`).join(" or ") || "no known format";
  const encodings = candidates.encodings.map(({ encoding }) => encoding).join(" or ");
  throw new CommandError(
    `The file can be ${formats}, in ${encodings}; confirm it with: npm run statement -- confirm ${importId} --format … --encoding …, or --mapping …`,
  );
}

function sentenceOf(found: Import): string {
  const { import_id: id, status, lines_new: added, lines_known: known, malformed, status_detail: detail } = found;
  const lines = `new lines: ${added}, known lines: ${known}, malformed rows: ${malformed}`;
  return `Import ${id} is ${status}: ${detail ?? lines}`;
}

function confirm(importId: number, options: Options): Work {
  const { format, encoding, mappingId } = declaredIn(options);
  const body = { format, encoding, mapping_id: mappingId };
  return async (operator) => {
    await operator.act(`imports/${importId}/confirm/`, body, uploadedSchema);
    await follow(operator, importId, options);
  };
}

function list(options: Options): Work {
  const account = options.account === undefined ? undefined : idOf(options.account, "--account");
  const before = options.before === undefined ? undefined : idOf(options.before, "--before");
  const query = queryOf({ account_id: account, before_id: before, limit: clientLimits.listedRows });
  return async ({ read }) => {
    const answer = await read(`imports/${query}`, importsSchema);
    if (options.json === true) return printJson(answer);
    for (const found of answer.imports) print(`${found.file_name}\t${sentenceOf(found)}`);
    if (answer.has_more) print(`There are more: --before ${answer.imports.at(-1)?.import_id}`);
  };
}

function preview(importId: number, options: Options): Work {
  const body = {
    import_id: importId,
    ...mappingIn(options),
    ...(options.rows === undefined ? {} : { limit: idOf(options.rows, "--rows") }),
  };
  return async ({ act }) => {
    const answer = await act("statement-mappings/preview/", body, previewSchema);
    if (options.json === true) return printJson(answer);
    if (answer.refusal !== null) throw new CommandError(answer.refusal.detail);
    for (const { position, raw, outcome, line, malformed } of answer.rows) {
      const shown = malformed === null ? JSON.stringify(line) : `${malformed.column}: ${malformed.reason}`;
      print(`${position}\t${raw}\n\t${outcome}\t${shown}`);
    }
  };
}

function mappingIn({ mapping, definition }: Options): object {
  if ((mapping === undefined) === (definition === undefined))
    throw new UsageError("Give --mapping or --definition; see --help.");
  return mapping === undefined
    ? { definition: readDefinition(definition) }
    : { mapping_id: idOf(mapping, "--mapping") };
}

function readDefinition(path: string | undefined): unknown {
  const file = required(path, "--definition");
  try {
    return JSON.parse(readFileSync(file, "utf8")) as unknown;
  } catch {
    throw new CommandError(`The file ${file} cannot be read as JSON; check its name and its text.`);
  }
}

function decide(decision: "release" | "withdraw", importId: number, options: Options): Work {
  const reason = required(options.reason, "--reason");
  return async ({ act }) => {
    const answer = await act(`imports/${importId}/${decision}/`, { reason }, z.looseObject({ status: z.string() }));
    if (options.json === true) return printJson(answer);
    print(`Import ${importId} is ${answer.status}.`);
  };
}

function mappingWork([command, subject, surplus]: readonly string[], options: Options): Work {
  if (surplus !== undefined) throw new UsageError(`There is one argument too many, "${surplus}"; see --help.`);
  const { json } = options;
  switch (command) {
    case "list":
      return async ({ read }) => {
        const mappings = await allRows<z.infer<typeof mappingSchema>>(async (last) => {
          const page = await read(`statement-mappings/${queryOf({ since_id: last?.mapping_id })}`, mappingsSchema);
          return [page.statement_mappings, page.has_more];
        });
        if (json === true) return printJson({ statement_mappings: mappings });
        if (mappings.length === 0) print("There is no mapping yet: store one with mapping store.");
        else print("mapping\tname\tversion");
        for (const { mapping_id: id, name, version } of mappings) print(`${id}\t${name}\t${version}`);
      };
    case "store": {
      const corrects = options.corrects === undefined ? {} : { corrects: idOf(options.corrects, "--corrects") };
      const body = { name: required(subject, "a name"), ...corrects, definition: readDefinition(options.definition) };
      return async ({ act }) => {
        const stored = await act("statement-mappings/", body, mappingSchema);
        if (json === true) return printJson(stored);
        print(`Mapping ${stored.mapping_id} is version ${stored.version} of ${stored.name}.`);
      };
    }
    case "test":
      return testMapping(idOf(subject, "the mapping"), idOf(options.import, "--import"), json);
    case undefined:
    default:
      throw new UsageError("Use mapping list, mapping store or mapping test; see --help.");
  }
}

function testMapping(mappingId: number, importId: number, json = false): Work {
  return async ({ act, read, signal }) => {
    let test = await act("statement-mappings/test/", { mapping_id: mappingId, import_id: importId }, testSchema);
    while (test.status === "running") {
      await delay(clientLimits.progressPollMs, undefined, { signal });
      test = await read(`mapping-tests/${test.test_id}/`, testSchema);
    }
    if (json) printJson(test);
    if (test.status !== "done") throw new CommandError(test.refusal?.detail ?? `The test is ${test.status}.`);
    if (!json) print(`The test is done: ${test.lines} lines, ${test.malformed} malformed rows.`);
  };
}

try {
  const { values, positionals } = parseCommandLine(process.argv.slice(2), OPTIONS);
  if (values.help === true) process.stdout.write(HELP);
  else await asPerson("operator", values, workOf(positionals, values));
} catch (error) {
  endWithError(error);
}
