/** Writes `gateway/contract/openapi.json`: `npm run openapi`, after a change of the contract. */
import { writeFile } from "node:fs/promises";
import { routes } from "../routes.ts";
import { buildDocument, documentText } from "./document.ts";
import { OPENAPI_FILE } from "./openapi-location.ts";

await writeFile(OPENAPI_FILE, documentText(buildDocument(routes)));
