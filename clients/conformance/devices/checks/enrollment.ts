/** The device claims the code once, stores the credential, and discards it when it has ended. */
import { perRun } from "../../check.ts";
import { expectSame, expectStatus, expectThat } from "../../expect.ts";
import type { DeviceCheck } from "../device-check.ts";
import type { Observed } from "../observer.ts";

const capability = "enrollment";
/** Within this time after a 401, a correct device sends at most a few more requests. */
const REFUSED_MS = 8_000;
const REFUSED_REQUESTS = 4;
/** Answers after which the device sends the same claim again. */
const CLAIM_AGAIN = [429, 503];
/** How long a restarted device has before the suite checks it. */
const AFTER_START_MS = 3_000;

const enrolledIn = perRun<{ enrolled?: Observed; credential: string }>(() => ({ credential: "" }));

const bearer = ({ headers }: Observed): string => headers.authorization ?? "";

export const enrollmentChecks: readonly DeviceCheck[] = [
  {
    id: "device.claims_code_once",
    capability,
    quotes: [
      "The device claims the code once, anonymously, and receives its credential; the credential is returned only once.",
      "Request JSON: `code` (string, required): the one-time enrollment code.",
    ],
    async run(world) {
      Object.assign(enrolledIn(world), await world.enroll());
      const { credential } = enrolledIn(world);
      await world.until("the device uses its credential", () =>
        world.requests().find((each) => bearer(each) === `Bearer ${credential}`),
      );
      const claims = world
        .requests("enroll/")
        .filter(({ answer }) => answer === undefined || !CLAIM_AGAIN.includes(answer.status));
      expectSame("requests to claim the code", claims.length, 1);
      expectSame("`code` of the request", claims[0]?.json["code"], world.code);
      expectSame("`Authorization` of the request", claims[0]?.headers.authorization, undefined);
    },
  },
  {
    id: "device.uses_credential",
    capability,
    after: ["device.claims_code_once"],
    quotes: ["Device endpoints other than enroll use `Authorization: Bearer <DEVICE_CREDENTIAL>`."],
    async run(world) {
      const { credential, enrolled } = enrolledIn(world);
      // Before, the device may have sent a credential from an earlier run.
      const sinceMs = enrolled?.answer?.atMs;
      await world.until("the device polls", () =>
        world.requests(world.polled, sinceMs).find(({ served }) => served !== undefined),
      );
      const others = world.requests(undefined, sinceMs).filter(({ operation }) => operation !== "enroll/");
      for (const each of others)
        expectSame(`\`Authorization\` of ${each.operation}`, bearer(each), `Bearer ${credential}`);
    },
  },
  {
    id: "device.keeps_credential",
    capability,
    after: ["device.uses_credential"],
    quotes: ["Claim it, and store the credential before you do anything else: the service returns it only once."],
    async run(world) {
      const { credential } = enrolledIn(world);
      const startedAtMs = await world.absent(async () => {
        const atMs = performance.now();
        await world.device.restart();
        await world.until("the device sends a request after its start", () => world.requests(undefined, atMs)[0]);
        return atMs;
      });
      await world.watch(AFTER_START_MS);
      expectSame("requests to claim a code after the start", world.requests("enroll/", startedAtMs).length, 0);
      const polled = await world.until("the device polls after its start", () =>
        world.requests(world.polled, startedAtMs).find(({ served }) => served !== undefined),
      );
      expectSame("`Authorization` after the start", bearer(polled), `Bearer ${credential}`);
    },
  },
];

/** These run late, because the device receives another credential. */
export const revocationChecks: readonly DeviceCheck[] = [
  {
    id: "device.gives_up_credential",
    capability,
    after: ["device.uses_credential"],
    quotes: [
      "The credential can be revoked (the conformance run revokes the one it mints).",
      "stop; ask for a new enrollment code, unless the credential has never been accepted since an answer with `X-Effective: false`.",
    ],
    async run(world) {
      await world.absent(async () => {
        const resetAtMs = performance.now();
        await world.reset();
        const refused = await world.until("the device receives 401", () =>
          world.requests(undefined, resetAtMs).find(({ answer }) => answer?.status === 401),
        );
        await world.watch(REFUSED_MS);
        const after = world.requests(undefined, refused.atMs).length - 1;
        expectThat(
          "requests with a credential that has ended",
          after <= REFUSED_REQUESTS,
          `at most ${REFUSED_REQUESTS} in 8 s`,
          after,
        );
      });
    },
  },
  {
    id: "device.enrolls_again",
    capability,
    after: ["device.gives_up_credential"],
    quotes: [
      "It ends when the owner resets or revokes the device: then each request is answered 401, and the device needs a new code.",
    ],
    async run(world) {
      await world.absent(async () => {
        await world.issueCode();
        const { enrolled, credential } = await world.enroll();
        const again = await world.until("the device polls with its new credential", () =>
          world.requests(world.polled, enrolled.atMs).find((each) => bearer(each) === `Bearer ${credential}`),
        );
        await world.until("the poll is answered", () => again.answer);
        expectStatus({ status: again.answer?.status ?? 0, headers: new Headers(), text: "", body: {} }, 200, 304);
      });
    },
  },
];
