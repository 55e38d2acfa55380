/**
 * Checks that a service or a device keeps the contract.
 *
 *   npm run conformance -- --help
 */
import { runConformance } from "./conformance/command.ts";

await runConformance(process.argv.slice(2));
