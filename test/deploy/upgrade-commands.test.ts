/** The commands of the operators' guide stop where one fails. Stand-ins replace `kubectl` and `docker`. */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { guideBlock, operationsGuide } from "../support/guide.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/**
 * Runs the lines as a file with these arguments, and with a stand-in for this program, whose shell script is `answer`. Returns
 * the arguments of all its calls.
 */
function run(
  lines: string,
  program: string,
  answer: string,
  ...args: readonly string[]
): { readonly status: number | null; readonly asked: string[] } {
  const folder = temporaryFolder("upgrade");
  onTestFinished(folder.remove);
  const log = join(folder.path, "asked");
  const standIn = `#!/bin/sh\necho "$*" >> ${log}\n${answer}\n`;
  writeFileSync(join(folder.path, program), standIn, { mode: 0o755 });
  const env = { PATH: `${folder.path}:${process.env["PATH"]}` };
  const { status } = spawnSync("sh", ["-c", lines, "upgrade.sh", ...args], { env, cwd: folder.path });
  return { status, asked: readFileSync(log, "utf8").trim().split("\n") };
}

const MIGRATE = "app.kubernetes.io/name=migrate";
const ROLLOUT = "-n device-payments rollout";
const DELETE_JOB = `-n device-payments delete job -l ${MIGRATE} --ignore-not-found`;

describe("the upgrade in Kubernetes", () => {
  const lines = guideBlock("sh", "kubectl apply -k YOUR-OVERLAY", operationsGuide);

  it("each part becomes ready: all parts are replaced in the guide's order, then the rest", () => {
    const { status, asked } = run(lines, "kubectl", "");
    expect(status).toBe(0);
    const parts = asked.flatMap((each) => /rollout status .* deployment\/(\S+)$/.exec(each)?.[1] ?? []);
    expect(parts).toEqual(["services", "webhook-signer", "stations", "gateway"]);
    expect(asked.at(-1)).toBe("apply -k YOUR-OVERLAY");
    // `apply` leaves a Job that has failed as it is.
    expect(asked.slice(0, 2)).toEqual([DELETE_JOB, `apply -k YOUR-OVERLAY -l ${MIGRATE}`]);
  });

  it("a part does not become ready: the parts after it are not replaced", () => {
    const { status, asked } = run(lines, "kubectl", 'case "$*" in *"rollout status"*webhook-signer) exit 1;; esac');
    expect(status).not.toBe(0);
    expect(asked.at(-1)).toMatch(/rollout status .*webhook-signer$/);
  });

  it("the way back: all parts are replaced in the opposite order, and nothing else is applied", () => {
    const { status, asked } = run(lines, "kubectl", "", "back");
    expect(status).toBe(0);
    const parts = ["sandbox-provider", "gateway", "stations", "webhook-signer", "services"];
    expect(asked).toEqual(
      parts.flatMap((part) => [
        `apply -k YOUR-OVERLAY -l app.kubernetes.io/name=${part}`,
        `${ROLLOUT} status --timeout=10m deployment/${part}`,
      ]),
    );
  });
});

describe("the change of a secret in Kubernetes", () => {
  const lines = guideBlock("sh", "rollout restart", operationsGuide);
  const asksFor = (...parts: readonly string[]) =>
    parts.flatMap((part) => ["restart", "status --timeout=10m"].map((what) => `${ROLLOUT} ${what} deployment/${part}`));

  it("each part becomes ready: all parts are restarted, each when the one before is ready", () => {
    const { status, asked } = run(lines, "kubectl", "");
    expect(status).toBe(0);
    expect(asked).toEqual(asksFor("services", "webhook-signer", "stations", "gateway", "sandbox-provider"));
  });

  it("a part does not become ready: the parts after it are not restarted", () => {
    const { status, asked } = run(lines, "kubectl", 'case "$*" in *"rollout status"*stations) exit 1;; esac');
    expect(status).not.toBe(0);
    expect(asked).toEqual(asksFor("services", "webhook-signer", "stations"));
  });
});

describe("`migrate --database-restored` in Kubernetes", () => {
  const lines = guideBlock("sh", "--database-restored", operationsGuide);
  /** Prints the Job as `kubectl kustomize` does, and appends what is applied to the calls. */
  const answer = (job: string) =>
    `case "$*" in kustomize*) printf '%s\\n' '${job}';; *apply*) cat >> "\${0%kubectl}asked";; esac`;

  it("the Job: it runs once with the argument, and is deleted before and after", () => {
    const job = '      - args:\n        - services/migrate.ts\n        - --replicas\n        - "3"';
    const { status, asked } = run(lines, "kubectl", answer(job));
    expect(status).toBe(0);
    const [first, ...rest] = job.split("\n");
    expect(asked).toEqual([
      "kustomize YOUR-OVERLAY",
      DELETE_JOB,
      `apply -l ${MIGRATE} -f -`,
      first,
      rest[0],
      "        - --database-restored",
      ...rest.slice(1),
      `-n device-payments wait --for=condition=complete --timeout=10m job -l ${MIGRATE}`,
      DELETE_JOB.replace(" --ignore-not-found", ""),
    ]);
  });

  it("a manifest without the known argument: nothing is changed", () => {
    const { status, asked } = run(lines, "kubectl", answer("kind: Job"));
    expect(status).not.toBe(0);
    expect(asked).toEqual(["kustomize YOUR-OVERLAY"]);
  });
});

describe("the upgrade with Compose", () => {
  const lines = guideBlock("sh", "docker compose build", operationsGuide);
  /** Answers `ps` with the ids of the old copies. */
  const PS = `*" ps -q"*) printf '%s\\n' 1 2;;`;
  const ANSWER = `case "$*" in ${PS} esac`;
  const replacedIn = (asked: readonly string[]) => asked.flatMap((each) => / up .* (\S+)$/.exec(each)?.[1] ?? []);

  it("the new copies become ready: every process of compose.yaml is replaced, the old copies last", () => {
    const { status, asked } = run(lines, "docker", ANSWER);
    expect(status).toBe(0);
    expect(replacedIn(asked)).toEqual([
      "services",
      "webhook-signer",
      "stations",
      "gateway-1",
      "gateway-2",
      "sandbox-provider",
    ]);
    expect(asked.filter((each) => each === "stop 1 2")).toHaveLength(4);
    expect(asked.slice(0, 2)).toEqual(["compose build", "compose run --rm --no-deps migrate"]);
    // Otherwise Compose replaces all servers at once when their image or their environment has changed.
    for (const each of asked.filter((call) => call.startsWith("compose up "))) expect(each).toContain(" --no-deps ");
  });

  it("the way back: every process is replaced in the opposite order, without `migrate`", () => {
    const { status, asked } = run(lines, "docker", ANSWER, "back");
    expect(status).toBe(0);
    expect(replacedIn(asked)).toEqual([
      "sandbox-provider",
      "gateway-1",
      "gateway-2",
      "stations",
      "webhook-signer",
      "services",
    ]);
    expect(asked.join("\n")).not.toContain("migrate");
  });

  it("new copies do not become ready: the old copies stay, and the later parts are not replaced", () => {
    // `up --wait` fails for a process that runs and is not ready.
    const { status, asked } = run(lines, "docker", `case "$*" in ${PS} *" up "*" --wait "*stations) exit 1;; esac`);
    expect(status).not.toBe(0);
    expect(asked.at(-1)).toMatch(/^compose up .* stations$/);
    expect(asked.filter((each) => each === "stop 1 2")).toHaveLength(2);
  });
});

describe("another version of the NATS servers with Compose", () => {
  it("each server: it is replaced when the one before is healthy", () => {
    const lines = guideBlock("sh", "/healthz').then", operationsGuide);
    // The first check of nats-2 comes too early.
    const answer = `case "$*" in *nats-2:8222*) [ -e checked ] || { touch checked; exit 1; };; esac`;
    const { status, asked } = run(lines, "docker", answer);
    expect(status).toBe(0);
    const steps = asked.map((each) => /^compose (up|exec) .*(nats-\d)/.exec(each)?.slice(1).join(" "));
    const order = ["up nats-1", "exec nats-1", "up nats-2", "exec nats-2", "exec nats-2", "up nats-3", "exec nats-3"];
    expect(steps).toEqual(order);
    for (const each of asked.filter((call) => call.startsWith("compose up "))) expect(each).toContain(" --no-deps ");
  });
});
