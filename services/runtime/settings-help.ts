/**
 * The help text about the settings of a process. It comes from their schemas, so that it cannot differ from the checks.
 */
import { z } from "zod";
import type { SettingFacts } from "./settings.ts";
import { UserError } from "./user-error.ts";

/** One process that an operator runs. */
export interface ProcessDescription {
  /** `gateway`, or the name of the service. */
  readonly name: string;
  /** The command that an operator types in the folder of the product. */
  readonly command: string;
  /** What it does: one sentence. */
  readonly does: string;
  /** When false, the process reads no setting of the database. */
  readonly usesDatabase: boolean;
  /** The schemas of all its settings. */
  readonly schemas: readonly z.ZodType[];
}

export interface SettingDescription extends SettingFacts {
  readonly name: string;
  /** The default as text of the environment; undefined when there is none. */
  readonly byDefault: string | undefined;
  /** The process does not start without it. */
  readonly isNeeded: boolean;
}

const OF_DATABASE: ReadonlySet<string> = new Set(["DATABASE_URL", "DATABASE_CONNECTIONS"]);

/** All settings of a process in the order of their schemas. Throws for a field that does not use `setting`. */
export function settingsOf({ schemas, usesDatabase }: ProcessDescription): readonly SettingDescription[] {
  // A map, because several services of one process may read the same setting.
  const fields = new Map(schemas.flatMap((schema) => Object.entries(fieldsOf(schema))));
  return [...fields]
    .filter(([name]) => usesDatabase || !OF_DATABASE.has(name))
    .map(([name, schema]) => {
      const facts = schema.meta() as Partial<SettingFacts> | undefined;
      if (facts?.meaning === undefined)
        throw new Error(`The setting ${name} has no explanation; make it by setting().`);
      const isNeeded = name === "DATABASE_URL" || !schema.safeParse(undefined).success;
      return { name, byDefault: defaultOf(schema), isNeeded, ...facts, meaning: facts.meaning };
    });
}

/** The fields of a settings schema, without its transformations. */
function fieldsOf(schema: z.ZodType): Readonly<Record<string, z.ZodType>> {
  if (schema instanceof z.ZodObject) return schema.shape;
  return schema instanceof z.ZodPipe ? fieldsOf(schema.in as z.ZodType) : {};
}

function defaultOf(schema: z.ZodType): string | undefined {
  if (schema instanceof z.ZodDefault) return String(schema.def.defaultValue) || undefined;
  return schema instanceof z.ZodPipe ? defaultOf(schema.in as z.ZodType) : undefined;
}

/** "needed", or the effect when the setting is not set. */
export function whenNotSet({ isNeeded, byDefault, unset }: SettingDescription): string {
  if (isNeeded) return "needed";
  return byDefault ?? unset ?? "none";
}

/** For a process without arguments. Throws UserError `unknown_arguments`, because arguments would have no effect. */
export function refuseArguments(args: readonly string[]): void {
  if (args.length === 0) return;
  const sentence = `This process has no arguments, such as ${args.join(" ")}: its settings are environment variables, which --help lists.`;
  throw new UserError(sentence, { code: "unknown_arguments" });
}

const LINE_CHARACTERS = 96;
const INDENT = "      ";

/** The text that `--help` prints. */
export function helpText(description: ProcessDescription): string {
  const rows = settingsOf(description).map((each) => {
    const marks = [each.shared && "shared", each.secret && "secret"].filter(Boolean);
    const value = each.isNeeded
      ? "needed"
      : each.byDefault === undefined
        ? `not set: ${whenNotSet(each)}`
        : each.byDefault;
    return `  ${[`${each.name} (${value})`, ...marks].join(", ")}\n${wrapped(each.meaning)}`;
  });
  return [
    `${description.command}\n`,
    wrapped(description.does, ""),
    "",
    "Settings are environment variables; an empty one counts as not set. In brackets is the default.",
    "shared: all processes of the installation that read it must have the same value.",
    "secret: only the operator may know it.",
    "",
    ...rows,
    "",
    "Signals: SIGTERM ends the process after the work that has begun, within 10 seconds; SIGINT within 2.",
    "Exit codes: 0 it was asked to end; 1 a setting, a server or the machine is unusable, the sentence names it;",
    "70 an unexpected error, its log has the details.",
    "",
  ].join("\n");
}

function wrapped(text: string, indent = INDENT): string {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length + 1 > LINE_CHARACTERS) lines.push(`${indent}${word}`);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines.join("\n");
}
