/** A script: records when a frame has shown each collection, and when a frame has shown none after it. `drawnAt` returns the time. */
export const RECORD_PIXELS = `
  const drawn = new Map(), wanted = new Map();
  let shown = "", last = "";
  new MutationObserver(() => {
    const found = document.querySelector(".collection");
    const label = found ? found.getAttribute("aria-label") : "none after " + last.replace(/\\D/g, "");
    if (label === shown) return;
    shown = label;
    if (found) last = label;
    requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => {
        drawn.set(label, performance.timeOrigin + performance.now());
        if (wanted.has(label)) wanted.get(label)(drawn.get(label));
      };
      channel.port2.postMessage(0);
    });
  }).observe(document.body, { subtree: true, childList: true, attributes: true });
  window.drawnAt = (label) =>
    drawn.has(label) ? drawn.get(label) : new Promise((resolve) => wanted.set(label, resolve));
`;
