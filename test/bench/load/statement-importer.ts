/** The product's import in a separate process: each request carries out the waiting import. Argument: the database. */
import { closeDatabase, openDatabase } from "../../../services/db/pool.ts";
import { statementFormat } from "../../../services/reconciliation/formats/registry.ts";
import { importNext } from "../../../services/reconciliation/import-work.ts";
import { IMPORT_LIMITS } from "../../../services/reconciliation/limits.ts";
import { fileBytes } from "../statement-files.ts";
import { answerWithTime } from "./timed-answers.ts";

const [url = ""] = process.argv.slice(2);
const { longestWorkMs } = IMPORT_LIMITS;
const database = openDatabase({ url, maxConnections: 2 });
const longDatabase = openDatabase({ url, maxConnections: 1, longestWorkMs, idleInTransactionMs: longestWorkMs });
const failures = {
  failed(error: unknown): void {
    throw error;
  },
};
const deps = { database, longDatabase, openFile: fileBytes, formatNamed: statementFormat, failures };

await answerWithTime({
  async work() {
    if (!(await importNext(deps))) throw new Error("No import waits.");
  },
  async stop() {
    await Promise.all([closeDatabase(database), closeDatabase(longDatabase)]);
  },
});
