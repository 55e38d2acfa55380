/** Tests that some machines cannot run print a line when they do not run: none is skipped silently. */

/** `condition` as it is; when it does not hold, one line names what is not tested here. For `test.runIf(onlyWhere(…))`. */
export function onlyWhere(condition: boolean, what: string): boolean {
  if (!condition) process.stderr.write(`\n*** Not tested on this machine: ${what}. ***\n\n`);
  return condition;
}
