/** One row of IndexedDB (browsers and WebViews). `localStorage` is not suitable: a browser may write it late. */
import type { DeviceStorage } from "../record.ts";

/** The parts of IndexedDB that are used, so that the kit needs no types of a browser. */
interface Request<T> {
  readonly result: T;
  readonly error: Error | null;
  addEventListener(type: "success" | "error" | "upgradeneeded", listener: () => void): void;
}
interface Store {
  get(key: string): Request<unknown>;
  put(value: unknown, key: string): Request<unknown>;
  delete(key: string): Request<unknown>;
}
interface Transaction {
  objectStore(name: string): Store;
  readonly error: Error | null;
  addEventListener(type: "complete" | "abort", listener: () => void): void;
}
interface Database {
  createObjectStore(name: string): unknown;
  transaction(store: string, mode: "readonly" | "readwrite", options?: { durability: "strict" }): Transaction;
  close(): void;
}
export interface IndexedDb {
  open(name: string, version: number): Request<Database>;
}

const STORE = "device";
const ROW = "record";

export function indexedDbStorage(indexedDb: IndexedDb, name = "device-kit"): DeviceStorage {
  const open = (): Promise<Database> => {
    const request = indexedDb.open(name, 1);
    request.addEventListener("upgradeneeded", () => void request.result.createObjectStore(STORE));
    return new Promise((resolve, reject) => {
      request.addEventListener("success", () => resolve(request.result));
      request.addEventListener("error", () => reject(request.error));
    });
  };
  const run = async (mode: "readonly" | "readwrite", act: (store: Store) => Request<unknown>): Promise<unknown> => {
    const database = await open();
    try {
      // Strict: the browser reports the end of a write when it is on the disk. An old one ignores the option.
      const transaction = database.transaction(STORE, mode, { durability: "strict" });
      const request = act(transaction.objectStore(STORE));
      return await new Promise((resolve, reject) => {
        transaction.addEventListener("complete", () => resolve(request.result));
        transaction.addEventListener("abort", () => reject(transaction.error));
      });
    } finally {
      database.close();
    }
  };
  return {
    async read() {
      const text = await run("readonly", (store) => store.get(ROW));
      return typeof text === "string" ? text : null;
    },
    async write(text) {
      await run("readwrite", (store) => store.put(text, ROW));
    },
    async remove() {
      await run("readwrite", (store) => store.delete(ROW));
    },
  };
}
