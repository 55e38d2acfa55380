/** Tests that need what not every machine has say so when they cannot run: nothing is skipped in silence. */

/** `condition` as it is; when it does not hold, one line says what is not tested here. For `test.runIf(onlyWhere(…))`. */
export function onlyWhere(condition: boolean, what: string): boolean {
  if (!condition) process.stderr.write(`\n*** Not tested on this machine: ${what}. ***\n\n`);
  return condition;
}
