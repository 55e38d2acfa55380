/**
 * One display of a name for each browser: two tabs with one credential would use up its pace, and neither would be up to date. The
 * next tab begins when the first one closes. A browser without locks trusts its person.
 */
export function whenAlone(name: string, start: () => void, onWait: () => void): void {
  if (!("locks" in navigator)) return start();
  const { locks } = navigator;
  const hold = (): Promise<never> => {
    start();
    // Held as long as the page lives.
    return new Promise<never>(() => undefined);
  };
  const failed = (): void => start();
  const lockName = `customer-display ${name}`;
  locks
    .request(lockName, { ifAvailable: true }, (lock) => {
      if (lock !== null) return hold();
      onWait();
      locks.request(lockName, hold).catch(failed);
      return undefined;
    })
    .catch(failed);
}
