/** The poll bench's set-up: a population, a gateway that has loaded it, and the control. */
import { freePort } from "../support/free-port.ts";
import type { BenchWorld } from "./bench-world.ts";
import { startLoadedGateway } from "./loaded-gateway.ts";
import { measurePolls, type PollMeasurement, startControl } from "./polls.ts";
import { populate } from "./population.ts";

export async function measureDisplayPolls(
  world: BenchWorld,
  plan: { credentials: number; rounds: number },
): Promise<PollMeasurement> {
  const devices = await populate(world.bus, 1, plan.credentials);
  const [first] = devices;
  if (first === undefined) throw new Error("There is no display to poll with.");
  const gateway = await startLoadedGateway(world, devices);
  const controlPort = await freePort();
  const control = await startControl(world, gateway.port, first, controlPort);
  // Each credential polls twice a round. So learning, the warm-up and three rounds stay within the throttle's burst of ten.
  const requestsPerRound = plan.credentials * 2;
  const measurement = await measurePolls({
    world,
    gateway,
    control: { pid: control.pid, port: controlPort },
    devices,
    rounds: plan.rounds,
    requestsPerRound,
  });
  await control.stop();
  await gateway.stop();
  return measurement;
}
