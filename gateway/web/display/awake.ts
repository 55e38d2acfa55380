/** A display that goes dark after a minute is none. The browser ends the lock when the page is hidden. */
export function keepAwake(): void {
  document.addEventListener("visibilitychange", ask);
  ask();
}

function ask(): void {
  if (document.hidden || !("wakeLock" in navigator)) return;
  // A browser may refuse it, for example with a low battery; it is asked again when the page is next visible.
  navigator.wakeLock.request("screen").catch(() => undefined);
}
