/** `sandbox seed|list|reset|delete`: stations for tests, by the owner's API. */
import { z } from "zod";
import { parseCommandLine, UsageError } from "../command.ts";
import {
  ACCESS_OPTIONS,
  allRows,
  asPerson,
  idOf,
  type Person,
  print,
  printJson,
  queryOf,
  required,
  type Work,
} from "../person.ts";

export const SANDBOX_HELP = `  npm run cli -- sandbox seed --filial ID --name NAME
      Makes a station for tests with a display, a companion and a cashier, and prints
      what is shown once: the enrollment codes and the cashier's password
      --currency EUR
  npm run cli -- sandbox list
  npm run cli -- sandbox reset SANDBOX
      Ends open collections and all access, and prints new codes and a new password
  npm run cli -- sandbox delete SANDBOX
      Closes the station for good
`;
const SANDBOX_OPTIONS = {
  filial: { type: "string" },
  name: { type: "string" },
  currency: { type: "string" },
} as const;

interface Options {
  readonly filial?: string | undefined;
  readonly name?: string | undefined;
  readonly currency?: string | undefined;
  readonly json?: boolean | undefined;
}

const sandboxSchema = z.looseObject({
  sandbox_id: z.int(),
  station_id: z.int(),
  filial_id: z.int(),
  name: z.string(),
  station_status: z.string(),
});
const pageSchema = z.looseObject({ sandboxes: z.array(sandboxSchema), has_more: z.boolean() });
const deviceSchema = z.looseObject({ device_id: z.int(), enrollment_code: z.string() });
const freshSchema = sandboxSchema.extend({
  display: deviceSchema,
  companion: deviceSchema,
  codes_expire_at: z.string(),
  cashier: z.looseObject({ email: z.string(), password: z.string() }),
});

export async function runSandbox(args: readonly string[]): Promise<void> {
  const { values, positionals } = parseCommandLine(args, { ...ACCESS_OPTIONS, ...SANDBOX_OPTIONS });
  await asPerson("owner", values, sandboxWork(positionals, values));
}

/** Checks the arguments before the log-in, and returns the work that they ask for. Throws `UsageError`. */
function sandboxWork(words: readonly string[], options: Options): Work {
  const [command, subject, surplus] = words;
  if (surplus !== undefined) throw new UsageError(`There is one argument too many, "${surplus}"; see --help.`);
  switch (command) {
    case "seed":
      return seed(options);
    case "list":
      return list(options);
    case "reset":
      return reset(idOf(subject, "the sandbox"), options);
    case "delete":
      return remove(idOf(subject, "the sandbox"), options);
    case undefined:
    default:
      throw new UsageError("Use sandbox seed, list, reset or delete; see --help.");
  }
}

function seed({ filial, name, currency = "EUR", json }: Options): Work {
  const body = { filial_id: idOf(filial, "--filial"), name: required(name, "--name"), currency };
  return async ({ act }) => show(await act("sandboxes/", body, freshSchema), json);
}

function reset(sandboxId: number, { json }: Options): Work {
  return async ({ act }) => show(await act(`sandboxes/${sandboxId}/reset/`, {}, freshSchema), json);
}

function show(fresh: z.infer<typeof freshSchema>, json: boolean | undefined): void {
  if (json === true) return printJson(fresh);
  const { sandbox_id: id, station_id: stationId, name, display, companion, cashier } = fresh;
  print(`Sandbox ${id} is ready: "${name}" is station ${stationId}.`);
  print(`display    device ${display.device_id}\tenrollment code ${display.enrollment_code}`);
  print(`companion  device ${companion.device_id}\tenrollment code ${companion.enrollment_code}`);
  print(`cashier    ${cashier.email}\tpassword ${cashier.password}`);
  print(`The codes and the password are shown only once; the codes are valid until ${fresh.codes_expire_at}.`);
}

function list({ json }: Options): Work {
  return async (owner) => {
    const sandboxes = await allSandboxes(owner);
    if (json === true) return printJson({ sandboxes });
    for (const { sandbox_id: id, station_id: stationId, name, filial_id: filialId } of sandboxes)
      print(`${id}\tstation ${stationId}\tfilial ${filialId}\t${name}`);
    if (sandboxes.length === 0) print("There is no sandbox: npm run cli -- sandbox seed.");
  };
}

const allSandboxes = ({ read }: Person): Promise<z.infer<typeof sandboxSchema>[]> =>
  allRows(async (last) => {
    const page = await read(`sandboxes/${queryOf({ since_id: last?.sandbox_id })}`, pageSchema);
    return [page.sandboxes, page.has_more];
  });

function remove(sandboxId: number, { json }: Options): Work {
  return async (owner) => {
    await owner.remove(`sandboxes/${sandboxId}/`);
    if (json === true) return printJson({ deleted: sandboxId });
    print(`Sandbox ${sandboxId} is deleted.`);
  };
}
