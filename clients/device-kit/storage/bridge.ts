/** Storage of the app around a WebView: three functions that its native side puts into the page. */
import type { DeviceStorage } from "../record.ts";

/** Each may return its result or a promise of it. Android's `@JavascriptInterface` returns it at once. */
export interface StorageBridge {
  readRecord(): string | null | Promise<string | null>;
  writeRecord(text: string): unknown;
  removeRecord(): unknown;
}

export function bridgeStorage(bridge: StorageBridge): DeviceStorage {
  return {
    // Some bridges turn null into an empty text.
    read: async () => (await bridge.readRecord()) || null,
    async write(text) {
      await bridge.writeRecord(text);
      // On some platforms a bridge cannot throw, so this reads the text to check that it was written.
      if ((await bridge.readRecord()) !== text) throw new Error("The app did not store the record.");
    },
    async remove() {
      await bridge.removeRecord();
    },
  };
}
