import { type BusRefusal, RefusedError } from "../../services/bus/refusals.ts";

/** Returns the refusal of a request. Fails the test when the request succeeds. */
export async function refusalOf(asked: Promise<unknown>): Promise<BusRefusal> {
  try {
    await asked;
  } catch (error) {
    if (error instanceof RefusedError) return error.refusal;
    throw error;
  }
  throw new Error("This request should have been refused.");
}

/** The reason of the refusal, or its code where it has none. */
export async function reasonOf(asked: Promise<unknown>): Promise<string> {
  const { code, reason } = await refusalOf(asked);
  return reason ?? code;
}
