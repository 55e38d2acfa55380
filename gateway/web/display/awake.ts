/** A display that goes dark after a minute is none. The browser ends the lock when the page is hidden. */
export function keepAwake(): void {
  const ask = (): void => {
    if (document.hidden || !("wakeLock" in navigator)) return;
    // A browser may refuse it, for example with a low battery; the page is asked about again when it is next visible.
    navigator.wakeLock.request("screen").catch(() => undefined);
  };
  document.addEventListener("visibilitychange", ask);
  ask();
}
