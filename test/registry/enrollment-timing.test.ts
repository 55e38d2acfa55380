/**
 * A refused code must cost the same time for each reason of the refusal (I10).
 *
 * The statistic is the probability that a try with one kind of code takes longer than a try with an unknown code
 * (Mann–Whitney, AUC). It is 0.5 when tries show no difference, and 1 when each try does. It uses only ranks, so that a pause
 * of a busy machine counts like any other try. The kinds take turns, so that a drift affects all of them equally. The test
 * allows a difference of five standard errors. A step that only one kind has or lacks, such as a statement or a row lock,
 * changed the statistic by 0.1 to 0.5 in trials.
 */
import { afterAll, beforeAll, test } from "vitest";
import {
  enrollDevice,
  listEnrollmentCodes,
  revokeEnrollmentCode,
} from "../../services/bus/messages/enrollment-codes.ts";
import { expectSameTimes } from "../support/rank-statistic.ts";
import {
  newActiveDevice,
  newCode,
  newDevice,
  newStation,
  type RegistryFixture,
  refusalOf,
  startRegistry,
} from "./registry-fixture.ts";

const CODES_PER_KIND = 8;

let fixture: RegistryFixture;
beforeAll(async () => {
  fixture = await startRegistry();
});
afterAll(() => fixture.stop());

type Kind = "unknown" | "spent" | "expired" | "revoked" | "malformed";

async function codesOfEachKind(): Promise<Record<Kind, string[]>> {
  const codes: Record<Kind, string[]> = {
    unknown: Array.from({ length: CODES_PER_KIND }, (_, index) => `0000${index}-00000`),
    spent: [],
    expired: [],
    revoked: [],
    malformed: ["", "ABC", "UUUUU-UUUUU", "0000-00000", "00000-000000", "?????-?????", "ÄÄÄÄÄ-ÄÄÄÄÄ", "A".repeat(60)],
  };
  const caller = fixture.owner;
  for (let index = 0; index < CODES_PER_KIND; index += 1) {
    const { stationId } = await newStation(fixture);
    codes.spent.push((await newActiveDevice(fixture, stationId)).code);
    const expiring = await newDevice(fixture, stationId);
    codes.expired.push(await newCode(fixture, expiring.deviceId));
    await fixture.sql`
      update enrollment_codes set expires_at = now() - interval '1 second' where device_id = ${expiring.deviceId}`;
    const revoking = await newDevice(fixture, stationId);
    codes.revoked.push(await newCode(fixture, revoking.deviceId));
    const listed = await fixture.ask(listEnrollmentCodes, { caller, deviceId: revoking.deviceId });
    await fixture.ask(revokeEnrollmentCode, { caller, codeId: listed.enrollmentCodes[0]?.codeId ?? 0 });
  }
  return codes;
}

test("refused codes: their response times are those of an unknown code, over many tries of each kind", async () => {
  const codes = await codesOfEachKind();
  const kinds = Object.keys(codes) as Kind[];
  await expectSameTimes("refused codes", kinds, async (kind, nth) => {
    const code = codes[kind][nth % CODES_PER_KIND] ?? "";
    await refusalOf(fixture.ask(enrollDevice, { address: "127.0.0.1", code }));
  });
}, 300_000);
