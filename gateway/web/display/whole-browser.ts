/**
 * One display for each browser: two tabs with one credential would use up its pace, and neither would be up to date. The
 * next tab begins when the first one closes. A browser without locks trusts its person.
 */
const LOCK = "customer-display";

export function whenAlone(start: () => void, onWait: () => void): void {
  if (!("locks" in navigator)) return start();
  const { locks } = navigator;
  const hold = (): Promise<never> => {
    start();
    // Held as long as the page lives.
    return new Promise<never>(() => undefined);
  };
  const failed = (): void => start();
  locks
    .request(LOCK, { ifAvailable: true }, (lock) => {
      if (lock !== null) return hold();
      onWait();
      locks.request(LOCK, hold).catch(failed);
      return undefined;
    })
    .catch(failed);
}
