/** The commands of the operators' guide for an upgrade stop where one fails. Stand-ins replace `kubectl` and `docker`. */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { guideBlock, operationsGuide } from "../support/guide.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** Runs the lines with a stand-in for this program, whose shell script is `answer`. Returns the arguments of all its calls. */
function run(
  lines: string,
  program: string,
  answer: string,
): { readonly status: number | null; readonly asked: string[] } {
  const folder = temporaryFolder("upgrade");
  onTestFinished(folder.remove);
  const log = join(folder.path, "asked");
  const standIn = `#!/bin/sh\necho "$*" >> ${log}\n${answer}\n`;
  writeFileSync(join(folder.path, program), standIn, { mode: 0o755 });
  writeFileSync(join(folder.path, "sleep"), "#!/bin/sh\n", { mode: 0o755 });
  const env = { PATH: `${folder.path}:${process.env["PATH"]}` };
  const { status } = spawnSync("sh", ["-c", lines], { env });
  return { status, asked: readFileSync(log, "utf8").trim().split("\n") };
}

describe("the upgrade in Kubernetes", () => {
  const lines = guideBlock("sh", "kubectl apply -k YOUR-OVERLAY", operationsGuide);

  it("each part becomes ready: all parts are replaced in the guide's order, then the rest", () => {
    const { status, asked } = run(lines, "kubectl", "");
    expect(status).toBe(0);
    const parts = asked.flatMap((each) => /rollout status .* deployment\/(\S+)$/.exec(each)?.[1] ?? []);
    expect(parts).toEqual(["services", "webhook-signer", "stations", "gateway"]);
    expect(asked.at(-1)).toBe("apply -k YOUR-OVERLAY");
  });

  it("a part does not become ready: the parts after it are not replaced", () => {
    const { status, asked } = run(lines, "kubectl", 'case "$*" in *"rollout status"*webhook-signer) exit 1;; esac');
    expect(status).not.toBe(0);
    expect(asked.at(-1)).toMatch(/rollout status .*webhook-signer$/);
  });
});

describe("the upgrade with Compose", () => {
  const lines = guideBlock("sh", "docker compose run --rm migrate", operationsGuide);
  /** Answers `ps` with the ids of the old copies, and with as many running copies as the last `up` asked for. */
  const ANSWER = `case "$*" in
    *" ps -q --status running gateway"*) echo 1;;
    *" ps -q --status running"*) printf '%s\\n' 1 2 3 4;;
    *" ps -q"*) printf '%s\\n' 1 2;; esac`;

  it("the new copies run: every process of compose.yaml is replaced, the old copies last", () => {
    const { status, asked } = run(lines, "docker", ANSWER);
    expect(status).toBe(0);
    const replaced = asked.flatMap((each) => / up .* (\S+)$/.exec(each)?.[1] ?? []);
    expect(replaced).toEqual(["services", "webhook-signer", "stations", "gateway-1", "gateway-2", "sandbox-provider"]);
    expect(asked.filter((each) => each === "stop 1 2")).toHaveLength(4);
  });

  it("new copies do not run: the old copies stay, and the later parts are not replaced", () => {
    const { status, asked } = run(lines, "docker", ANSWER.replace("1 2 3 4", "1 2"));
    expect(status).not.toBe(0);
    expect(asked.at(-1)).toBe("compose ps -q --status running services");
  });
});
