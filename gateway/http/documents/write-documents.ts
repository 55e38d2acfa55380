/** Writes `openapi.json`, `asyncapi.json` and `asyncapi-bus.json`. Run `npm run openapi` after a change of the contract. */
import { writeFile } from "node:fs/promises";
import { ASYNCAPI_FILE, BUS_ASYNCAPI_FILE, OPENAPI_FILE } from "../../api/meta/pages.ts";
import { routes } from "../../routes.ts";
import { asyncApiText } from "./asyncapi.ts";
import { busAsyncApiText } from "./asyncapi-bus.ts";
import { buildDocument, documentText } from "./openapi.ts";

await writeFile(OPENAPI_FILE, documentText(buildDocument(routes)));
await writeFile(ASYNCAPI_FILE, asyncApiText());
await writeFile(BUS_ASYNCAPI_FILE, busAsyncApiText());
