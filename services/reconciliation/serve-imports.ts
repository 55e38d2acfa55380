/** The operations of uploaded files. */
import * as messages from "../bus/messages/statement-imports.ts";
import { type ServeDeps, type Serving, serve } from "../bus/operation.ts";
import * as imports from "./imports.ts";

export function serveImports(responder: ServeDeps, deps: imports.UploadDeps): Serving[] {
  return [
    serve(responder, messages.prepareImport, (request) => imports.prepareImport(deps, request)),
    serve(responder, messages.createImport, (request) => imports.createImport(deps, request)),
    serve(responder, messages.confirmImportFormat, (request) => imports.confirmImportFormat(deps, request)),
    serve(responder, messages.getImport, (request) => imports.getImport(deps, request)),
    serve(responder, messages.listImports, (request) => imports.listImports(deps, request)),
  ];
}
