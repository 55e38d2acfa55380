/** Storage for tests: it ends with the program. */
import type { DeviceStorage } from "../record.ts";

export function memoryStorage(text: string | null = null): DeviceStorage {
  let stored = text;
  return {
    read: async () => stored,
    async write(next) {
      stored = next;
    },
    async remove() {
      stored = null;
    },
  };
}
