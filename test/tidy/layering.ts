/** Which folder may import which, and which package belongs to which folder. */
import { importsOf, isCode, packageOf, type Rule, resolvedImport } from "./source-file.ts";

const SHARED_SERVICES = ["services/bus", "services/db", "services/runtime"];

/** What each folder may import beside itself. `test` may import everything. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  machines: [],
  "services/bus": ["machines", "services/runtime"],
  "services/db": ["machines", "services/bus", "services/runtime"],
  // The gateway uses `services/bus` and `services/runtime`, so neither may import the database.
  "services/runtime": ["machines", "services/bus", "package.json"],
  // The common part of services that raise issues; it is not a service.
  "services/issues": ["machines", ...SHARED_SERVICES],
  /** Any other folder under services/ is a service. */
  service: ["machines", ...SHARED_SERVICES, "services/issues"],
  gateway: ["machines", "services/bus", "services/runtime"],
  clients: ["package.json"],
  deploy: SHARED_SERVICES,
};

/** Packages that only some folders may import, with the reason that the complaint gives. */
const PACKAGE_HOMES: Record<string, { readonly folders: readonly string[]; readonly because: string }> = {
  postgres: {
    folders: [
      "services/db",
      "services/registry",
      "services/relay",
      "services/settlement",
      "services/audit",
      // The database is created before any service starts.
      "deploy/embedded",
      "test",
    ],
    because: "only the services that own tables talk to PostgreSQL",
  },
  "uWebSockets.js": { folders: ["gateway", "test/bench", "test/gateway"], because: "only the gateway knows HTTP" },
  "node-pg-migrate": { folders: ["services/db", "test"], because: "only services/db migrates" },
};

/** The folder whose rules a path follows. */
function areaOf(path: string): string {
  const [top = "", second = ""] = path.split("/");
  if (top !== "services" || !path.includes("/", "services/".length)) return top;
  return `${top}/${second}`;
}

const isWithin = (path: string, folder: string): boolean => path.startsWith(`${folder}/`);

/** `npm start` checks the settings of its parts before it starts them, and the documents list them. Neither starts a part. */
const isPartSettings = (path: string): boolean =>
  /^(services\/[\w-]+|gateway)\/settings\.ts$/.test(path) || path === "services/service-list.ts";

/** Set-up and `npm start` build the pages, which no part does. */
const PAGES_BUILD = "gateway/web/build.ts";

/** The display is a device: its page runs the device kit. */
const isDisplaysKit = (importer: string, target: string): boolean =>
  isWithin(importer, "gateway/web/display") && isWithin(target, "clients/device-kit");

function mayImport(importer: string, target: string): boolean {
  const from = areaOf(importer);
  const to = areaOf(target);
  if (from === to || from === "test") return true;
  if (isDisplaysKit(importer, target)) return true;
  if (from === "deploy" && (isPartSettings(target) || target === PAGES_BUILD)) return true;
  // services/main.ts composes services and is the only file beside their folders.
  if (from === "services") return to.startsWith("services/");
  const allowed = MAY_IMPORT[from] ?? (from.startsWith("services/") ? MAY_IMPORT["service"] : undefined);
  return allowed === undefined || allowed.includes(to);
}

export const importsGoOneWay: Rule = (file) => {
  if (!isCode(file)) return [];
  const from = areaOf(file.path);
  return importsOf(file).flatMap(({ line, specifier }) => {
    const target = resolvedImport(file, specifier);
    if (target === undefined || mayImport(file.path, target)) return [];
    return [`${file.path}:${line} imports ${target}, but ${from} may not import ${areaOf(target)}.`];
  });
};

export const packagesStayAtHome: Rule = (file) => {
  if (!isCode(file)) return [];
  return importsOf(file).flatMap(({ line, specifier }) => {
    const name = packageOf(specifier);
    const home = name === undefined ? undefined : PACKAGE_HOMES[name];
    if (home === undefined || home.folders.some((folder) => isWithin(file.path, folder))) return [];
    return [`${file.path}:${line} imports the package ${name}, but ${home.because}.`];
  });
};

/** Machines are pure: beside each other they may import the state machine library and nothing else. */
export const machinesImportNothing: Rule = (file) => {
  if (!isCode(file) || !isWithin(file.path, "machines")) return [];
  return importsOf(file)
    .filter(({ specifier }) => !specifier.startsWith(".") && specifier !== "xstate")
    .map(({ line, specifier }) => `${file.path}:${line} imports ${specifier}, but machines import xstate at most.`);
};
