/** The documents that list the settings of all processes: made from the schemas, and compared with them by a test. */
import { join } from "node:path";
import { GATEWAY_DESCRIPTION } from "../gateway/settings.ts";
import { type SettingDescription, settingsOf, whenNotSet } from "../services/runtime/settings-help.ts";
import { describeServices, SERVICES } from "../services/service-list.ts";

const CHECKOUT = join(import.meta.dirname, "..");

/** A setting with the processes that read it. */
interface ReadSetting extends SettingDescription {
  readonly readers: string[];
  /** Those of them that do not start without it. */
  readonly neededBy: string[];
}

/** The files and what belongs in them. */
export async function settingsDocuments(): Promise<readonly { readonly path: string; readonly text: string }[]> {
  const settings = await allSettings();
  return [
    { path: join(CHECKOUT, "docs", "settings.md"), text: page(settings) },
    { path: join(CHECKOUT, "deploy", "production", "settings.env.example"), text: example(settings) },
  ];
}

async function processDescriptions() {
  const services = Object.keys(SERVICES).map((name) => describeServices([name]));
  return [GATEWAY_DESCRIPTION, ...(await Promise.all(services))];
}

/** By name, in the order of the processes. Where two processes explain one setting, both explanations are kept. */
async function allSettings(): Promise<readonly ReadSetting[]> {
  const found = new Map<string, ReadSetting>();
  for (const description of await processDescriptions()) {
    for (const each of settingsOf(description)) {
      const known = found.get(each.name);
      const neededBy = each.isNeeded ? [description.name] : [];
      if (known === undefined) found.set(each.name, { ...each, readers: [description.name], neededBy });
      else {
        known.readers.push(description.name);
        known.neededBy.push(...neededBy);
        if (known.meaning.includes(each.meaning)) continue;
        const reader = `For \`${description.name}\`: ${each.meaning.charAt(0).toLowerCase()}${each.meaning.slice(1)}`;
        found.set(each.name, { ...known, meaning: `${known.meaning} ${reader}` });
      }
    }
  }
  return [...found.values()];
}

/** "all", "all services", or their names. */
function readersOf({ name, readers }: ReadSetting): string {
  const services = Object.keys(SERVICES).length;
  if (readers.length === services + 1) return "all";
  if (name === "DATABASE_URL" || name === "DATABASE_CONNECTIONS") return "all but `gateway` and `stations`";
  return listed(readers);
}

const listed = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(", ");

const isNeededBySome = ({ readers, neededBy }: ReadSetting): boolean =>
  neededBy.length > 0 && neededBy.length < readers.length;

function page(settings: readonly ReadSetting[]): string {
  const rows = settings.map((each) => {
    const marks = [each.shared && "shared", each.secret && "secret"].filter(Boolean).join(", ");
    const unset = each.byDefault === undefined ? whenNotSet(each) : `\`${each.byDefault}\``;
    const value = isNeededBySome(each) ? `needed by ${listed(each.neededBy)}; else: ${unset}` : unset;
    return `| \`${each.name}\` | ${readersOf(each)} | ${value} | ${marks} | ${each.meaning} |`;
  });
  return `# Settings of the processes

A process reads these environment variables once, at its start; an empty one counts as not set. \`node gateway/main.ts --help\` and \`node services/main.ts SERVICE --help\` print the settings of one process. \`npm run settings\` writes this page and \`deploy/production/settings.env.example\` from the settings' schemas.

- **needed**: the process does not start without it.
- **shared**: all processes of the installation that read it must have the same value.
- **secret**: only the operator may know it. A process needs only the secrets that it reads.

\`npm start\` takes the same variables, checks all of them before it starts anything, and generates missing secrets once, in \`secrets.json\` of its data folder. \`npm run migrate\` alone creates and changes the schema of the database and the streams of the bus; an operator runs it before the processes of a new version, and \`npm start\` runs it itself.

| setting | read by | default | | what it is |
|---|---|---|---|---|
${rows.join("\n")}

${START_AND_COMMANDS}`;
}

/** What no process of the installation reads. */
const START_AND_COMMANDS = `## Settings that \`npm start\` and the commands read in addition

| setting | what it is; its default |
|---|---|
| \`PORT\`, \`HOST\` | where the API listens; 8480 at 127.0.0.1 |
| \`DATA_DIR\` | the data folder of \`npm start\`; \`.data\` |
| \`NATS_URL\`, \`DATABASE_URL\` | servers of your own; without them \`npm start\` starts its own |
| \`LOG_MAX_MB\` | the most that all logs of \`npm start\` take together, in megabytes; each part has an equal share, in its current file and four older ones; 200 |
| \`METRICS_PORT\` | the first of the five ports where the processes of \`npm start\` answer Prometheus; nowhere |
| \`NATS_SERVER_BIN\`, \`DEVICE_PAYMENTS_CACHE_DIR\` | the nats-server that \`npm start\` uses; where it keeps one that it has fetched, \`.cache\` |
| \`BASE_URL\` | for the virtual devices, \`npm run organization\`, \`statement\`, \`recon\` and \`cli\`: where the service is; what \`npm start\` wrote, else \`http://127.0.0.1:8480\` |
| \`GATEWAY_CERTIFICATE_FILE\` | for the same: a certificate in PEM that they accept at the gateway beside those that Node trusts; what \`TLS_CERT_FILE\` of \`npm start\` names |
| \`PLATFORM_KEY\` | for \`npm run organization\`: the platform key; what \`npm start\` keeps |
| \`ENROLLMENT_CODE\`, \`CREDENTIAL_FILE\` | of a virtual device: its code at the first start, and the file of its credential; \`.data/<name>.json\` |
| \`ROBOTICS_CREDENTIAL\`, \`OWNER_EMAIL\`, \`OWNER_PASSWORD\` | the credentials of \`npm run cli\`; what \`npm start\` wrote |
| \`OPERATOR_EMAIL\`, \`OPERATOR_PASSWORD\` | the log-in of \`npm run statement\` and \`npm run recon\`; that of the sandbox's operator, which \`npm start\` wrote |
`;

function example(settings: readonly ReadSetting[]): string {
  const groups = [...new Set(settings.map((each) => titleOf(each)))];
  const blocks = groups.map((title) => {
    const lines = settings.filter((each) => titleOf(each) === title).map(exampleLines);
    return [`# ---- ${title}`, ...lines].join("\n\n");
  });
  return `# Settings of the processes; docs/settings.md explains them. Written by \`npm run settings\`.
# A line without a mark of comment is needed: give it a value. The others show their defaults.

${blocks.join("\n\n")}
`;
}

const titleOf = (each: ReadSetting): string => readersOf(each).replaceAll("`", "");

function exampleLines(each: ReadSetting): string {
  const marks = [each.shared && "shared", each.secret && "secret"].filter(Boolean).join(", ");
  const comment = `# ${each.meaning}${marks === "" ? "" : ` (${marks})`}`;
  if (each.neededBy.length === each.readers.length) return `${comment}\n${each.name}=`;
  const needed = isNeededBySome(each) ? `\n# Needed by ${each.neededBy.join(", ")}.` : "";
  const unset = each.byDefault === undefined ? `\n# Not set: ${whenNotSet(each)}.` : "";
  return `${comment}${needed}${unset}\n#${each.name}=${each.byDefault ?? ""}`;
}
