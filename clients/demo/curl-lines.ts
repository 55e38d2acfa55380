/** Prints a demo as lines to paste into a shell. They need curl, grep and sed. */
import { type Demo, type Step, UNTIL_TRIES } from "./step.ts";

const FIELD = String.raw`field() { grep -o '"'"$1"'":"\{0,1\}[^",}]*' | head -n 1 | sed 's/^"[^"]*":"\{0,1\}//'; }`;

export interface CurlTarget {
  readonly baseUrl: string;
  /** Where the gateway speaks TLS itself: its public key as curl pins it. No other certificate is then accepted. */
  readonly publicKeyPin: string | undefined;
}

/** The lines run in a shell of their own, so that they leave nothing behind in the one that they are pasted into. */
export function curlLines(demo: Demo, target: CurlTarget): readonly string[] {
  return [
    "(",
    `BASE=${target.baseUrl}`,
    FIELD,
    ...Object.entries(demo.given).map(([name, value]) => `${name}=${value}`),
    ...demo.steps.flatMap((step) => stepLines(step, target)),
    ")",
  ];
}

function stepLines(step: Step, { publicKeyPin }: CurlTarget): string[] {
  const isElsewhere = step.path.startsWith("$");
  const curl = publicKeyPin === undefined || isElsewhere ? "curl" : `curl --insecure --pinnedpubkey ${publicKeyPin}`;
  const request = [
    `${curl} -sS`,
    step.method === "POST" && step.body === undefined && step.form === undefined ? "-X POST" : "",
    `"${isElsewhere ? "" : "$BASE"}${step.path}"`,
    step.as === undefined ? "" : `-H "authorization: Bearer $${step.as}"`,
    step.body === undefined ? "" : `-H 'content-type: application/json' -d '${quotedBody(step.body)}'`,
    step.form === undefined ? "" : `-d '${step.form}'`,
  ]
    .filter((word) => word !== "")
    .join(" ");
  return [...(step.note === undefined ? [] : [`# ${step.note}`]), lineOf(step, request)];
}

function lineOf(step: Step, request: string): string {
  if (step.onlyWith !== undefined) return `[ -z "$${step.onlyWith}" ] || { ${request}; echo; }`;
  const keep = Object.entries(step.keep ?? {}).map(([name, field]) => `${name}=$(echo "$ANSWER" | field ${field})`);
  if (step.until !== undefined) {
    const tries = Array.from({ length: UNTIL_TRIES }, (_, index) => index + 1).join(" ");
    const loop = `for second in ${tries}; do ANSWER=$(${request}); case $ANSWER in *'${step.until}'*) break;; esac; sleep 1; done`;
    return [loop, 'echo "$ANSWER"', ...keep].join("; ");
  }
  return keep.length === 0 ? `${request}; echo` : [`ANSWER=$(${request})`, 'echo "$ANSWER"', ...keep].join("; ");
}

/** Leaves the single quotes around each kept value, for the shell to fill in. `"$NAME"` alone is a number. */
function quotedBody(body: object): string {
  return JSON.stringify(body)
    .replaceAll("'", String.raw`'\''`)
    .replaceAll(/"(\$[A-Z]+)"/g, "$1")
    .replaceAll(/\$\{?([A-Z]+)\}?/g, (_, name: string) => `'$${name}'`);
}
