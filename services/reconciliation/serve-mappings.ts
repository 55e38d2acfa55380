/** The operations of mappings, of lines, and of what operators decide about imports. */
import * as decisionMessages from "../bus/messages/import-decisions.ts";
import * as lineMessages from "../bus/messages/statement-lines.ts";
import * as mappingMessages from "../bus/messages/statement-mappings.ts";
import { type ServeDeps, type Serving, serve } from "../bus/operation.ts";
import * as decisions from "./import-decisions.ts";
import * as lines from "./lines.ts";
import * as tests from "./mapping-tests.ts";
import * as mappings from "./mappings.ts";

export function serveMappings(responder: ServeDeps, deps: tests.MappingTestDeps): Serving[] {
  return [
    serve(responder, mappingMessages.listStatementMappings, (request) => mappings.listStatementMappings(deps, request)),
    serve(responder, mappingMessages.getStatementMapping, (request) => mappings.getStatementMapping(deps, request)),
    serve(responder, mappingMessages.createStatementMapping, (request) =>
      mappings.createStatementMapping(deps, request),
    ),
    serve(responder, mappingMessages.previewStatementMapping, (request) =>
      mappings.previewStatementMapping(deps, request),
    ),
    serve(responder, mappingMessages.testStatementMapping, (request) => tests.testStatementMapping(deps, request)),
    serve(responder, mappingMessages.getMappingTest, (request) => tests.getMappingTest(deps, request)),
    serve(responder, lineMessages.listLines, (request) => lines.listLines(deps, request)),
    serve(responder, lineMessages.listImportLines, (request) => lines.listImportLines(deps, request)),
    serve(responder, lineMessages.listMalformedRows, (request) => lines.listMalformedRows(deps, request)),
    serve(responder, decisionMessages.releaseImport, (request) => decisions.releaseImport(deps, request)),
    serve(responder, decisionMessages.withdrawImport, (request) => decisions.withdrawImport(deps, request)),
  ];
}
