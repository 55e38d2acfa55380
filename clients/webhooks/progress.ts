/** One line for a person, or with `--json` its facts for a program. */
export type Progress = (line: string, facts: Readonly<Record<string, unknown>>) => void;
