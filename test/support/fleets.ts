/** A fleet of robots at the consumers' API. The owner admits it and offers it tasks. */
import { type ApiClient, apiClient } from "./api-client.ts";
import type { Person } from "./people.ts";

export interface TestFleet extends ApiClient {
  readonly consumerId: number;
  readonly credential: string;
}

/** The fleet's paths are below `/api/robotics/v1/`. */
export const fleetClient = (baseUrl: string, credential: string): ApiClient =>
  apiClient(`${baseUrl}/api/robotics/v1/`, credential);

/** Admits a test consumer at a filial. */
export async function addFleet(baseUrl: string, owner: Person, filialId: number, name = "Fleet"): Promise<TestFleet> {
  const body = { filial_id: filialId, name, mode: "test" };
  const made = await owner.good<{ robotics_consumer: { consumer_id: number }; credential: string }>(
    "POST",
    "robotics-consumers/",
    { body },
  );
  const { credential } = made;
  return { ...fleetClient(baseUrl, credential), consumerId: made.robotics_consumer.consumer_id, credential };
}

export interface TaskOnTheWire {
  readonly task_id: number;
  readonly display_number: number;
  readonly status: string;
  readonly expires_at: string;
}

/** The body of an offer: soup for table 12. */
export const offerBody = (consumerId: number, more: object = {}) => ({
  consumer_id: consumerId,
  leg: "kitchen_to_table",
  manifest: [{ name: "Soup", quantity: 2 }],
  destination: { name: "Table 12" },
  ...more,
});

export const offerTask = (owner: Person, fleet: TestFleet, more: object = {}): Promise<TaskOnTheWire> =>
  owner.good<TaskOnTheWire>("POST", "serving-tasks/", { body: offerBody(fleet.consumerId, more) });
