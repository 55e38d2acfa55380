/** The pages for people and the files that they load, as `gateway/web/build.ts` has built them. */
import { readFileSync } from "node:fs";
import { ApiError, type Handler } from "../../http/handler-context.ts";
import { anyone, route } from "../../http/route.ts";
import { etagOf, matchesEtag } from "../../read-model/etag.ts";
import { BUILT_PAGES, type BuildManifest, PAGES, type PageName } from "../../web/page-names.ts";
import { acceptedCoding, type ContentCoding } from "./static-file.ts";

interface LoadedFile {
  readonly type: string;
  readonly hashed: boolean;
  readonly etag: string;
  readonly bodies: Readonly<Record<ContentCoding | "identity", Uint8Array>>;
}

/** All pages, less than a megabyte. The gateway loads a new build at its next start. */
let loaded: ReadonlyMap<string, LoadedFile> | undefined;

const read = (file: string): Buffer => readFileSync(new URL(file, BUILT_PAGES));

function load(): ReadonlyMap<string, LoadedFile> {
  const { files } = JSON.parse(read("manifest.json").toString("utf8")) as BuildManifest;
  const found = Object.entries(files).map(([path, { file, type, hashed }]) => {
    const identity = read(file);
    const bodies = { identity, br: read(`${file}.br`), gzip: read(`${file}.gz`) };
    return [path, { type, hashed, etag: etagOf(identity.toString("latin1")), bodies }] as const;
  });
  return new Map(found);
}

function builtFile(path: string): LoadedFile {
  try {
    loaded ??= load();
  } catch {
    throw new ApiError("path_not_found", {
      detail: "The pages are not built here: run `npm run pages`, then restart.",
    });
  }
  const file = loaded.get(path);
  if (file === undefined) throw new ApiError("path_not_found");
  return file;
}

/** The characters of a host and port that may go into a policy. */
const HOST = /^[\w.:[\]-]+$/;

/**
 * A page loads and calls only this gateway, and has nothing inline. In Safari before 15.4 and Firefox before 108, `'self'` does
 * not include WebSockets, so the policy lists them. Pages of this origin may frame a page: the start page shows three.
 */
export function contentSecurityPolicy(host: string): string {
  const sockets = HOST.test(host) ? ` ws://${host} wss://${host}` : "";
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    `connect-src 'self'${sockets}`,
    "manifest-src 'self'",
    "worker-src 'self'",
    "frame-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'self'",
  ].join("; ");
}

const serve =
  (pathOf: (file: string) => string): Handler =>
  (context) => {
    const file = builtFile(pathOf(context.file()));
    const headers = {
      // A browser requests a page at each visit. The page refers to files that never change.
      "Cache-Control": file.hashed ? "public, max-age=31536000, immutable" : "no-cache",
      ETag: file.etag,
      Vary: "Accept-Encoding",
      "Content-Security-Policy": contentSecurityPolicy(context.header("host")),
    };
    const sent = context.header("if-none-match");
    if (sent !== "" && matchesEtag(sent, file.etag)) return { status: 304, headers };
    const coding = acceptedCoding(context.header("accept-encoding"));
    return {
      status: 200,
      ready: file.bodies[coding ?? "identity"],
      headers: {
        ...headers,
        "Content-Type": file.type,
        ...(coding === undefined ? {} : { "Content-Encoding": coding }),
      },
    };
  };

function fileRow(path: `/${string}`, operation: string, handler: Handler) {
  return route({
    method: "GET",
    path,
    operation,
    tag: "service",
    summary: "A page for people",
    who: anyone,
    replies: { 200: { description: "The file.", schema: null } },
    undocumented: true,
    handler,
  });
}

const named = (what: string, page: PageName): string => `get${what}${page[0]?.toUpperCase()}${page.slice(1)}`;

/** For people who type the address without its last slash. */
function redirectRow(page: PageName) {
  return route({
    method: "GET",
    path: `/${page}`,
    operation: named("Redirect", page),
    tag: "service",
    summary: "Redirect to a page for people",
    who: anyone,
    replies: { 308: { description: "To the page.", schema: null } },
    undocumented: true,
    handler: () => ({ status: 308, headers: { Location: `/${page}/` } }),
  });
}

export const webPageRoutes = [
  ...PAGES.flatMap((page) => [
    redirectRow(page),
    fileRow(
      `/${page}/`,
      named("Page", page),
      serve(() => `/${page}/`),
    ),
  ]),
  // All sections of the back office are one page, which reads its URL.
  fileRow(
    "/back/{file}/",
    "getSectionBack",
    serve(() => "/back/"),
  ),
  // Browsers request these two files by fixed names.
  fileRow(
    "/display/service-worker.js",
    "getDisplayWorker",
    serve(() => "/display/service-worker.js"),
  ),
  fileRow(
    "/display/manifest.webmanifest",
    "getDisplayManifest",
    serve(() => "/display/manifest.webmanifest"),
  ),
  fileRow(
    "/assets/{file}",
    "getAsset",
    serve((file) => `/assets/${file}`),
  ),
];
