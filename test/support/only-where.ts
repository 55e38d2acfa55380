/** A test that a machine cannot run prints a line when it is skipped. */

/** Returns `condition`. When it is false, prints what is not tested on this machine. For `test.runIf(onlyWhere(…))`. */
export function onlyWhere(condition: boolean, what: string): boolean {
  if (!condition) process.stderr.write(`\n*** Not tested on this machine: ${what}. ***\n\n`);
  return condition;
}
