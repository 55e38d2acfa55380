/** The sandbox's own consumer: one for tests, whose credential whoever starts the sandbox keeps. */
import type { seedSandboxConsumer } from "../../bus/messages/robotics.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import type { Transaction } from "../../db/pool.ts";
import { recordRoboticsTrail } from "../../db/robotics-trail.ts";
import type { RoboticsDeps } from "../deps.ts";
import { findTestConsumer, insertConsumer, setCredential } from "../sql/consumers.ts";
import { lockFilial } from "../sql/filials.ts";

/** By this it is found again; an owner who renames it gets another one at the next start. */
const NAME = "Sandbox robots";
/** Whoever operates the installation acts on the bus only. */
const OPERATOR = { kind: "registry", id: 0, name: "operator" } as const;

type Request = RequestOf<typeof seedSandboxConsumer>;

/** Makes it, or gives it this credential; a second run changes nothing. Refuses with `not_found` (the filial). */
export async function seedSandbox(
  { database }: Pick<RoboticsDeps, "database">,
  request: Request,
): Promise<ReplyOf<typeof seedSandboxConsumer>> {
  const { organizationId, filialId } = request;
  const credentialHash = Buffer.from(request.credentialHash, "hex");
  const consumerId = await database.begin(async (sql) => {
    if ((await lockFilial(sql, { organizationId, filialId })) === undefined) {
      throw new RefusedError({ code: "not_found" });
    }
    const known = await findTestConsumer(sql, { filialId, name: NAME });
    if (known === undefined) {
      const wanted = { organizationId, filialId, name: NAME, mode: "test", credentialHash } as const;
      const { consumer_id: made } = await insertConsumer(sql, wanted);
      await record(sql, request, { action: "robotics_consumer_created", consumerId: made });
      return made;
    }
    if (await setCredential(sql, known.consumer_id, credentialHash)) {
      await record(sql, request, { action: "robotics_credential_reset", consumerId: known.consumer_id });
    }
    return known.consumer_id;
  });
  return { consumerId };
}

async function record(
  sql: Transaction,
  { organizationId }: Request,
  { action, consumerId }: { readonly action: string; readonly consumerId: number },
): Promise<void> {
  const subject = { kind: "robotics_consumer", id: consumerId } as const;
  await recordRoboticsTrail(sql, { organizationId, actor: OPERATOR, action, subject, data: { seeded: true } });
}
