/** The poll bench's set-up: a population, a gateway that has loaded it, and the control. */
import { freePort } from "../support/free-port.ts";
import type { Ground } from "./bench-world.ts";
import { startLoadedGateway } from "./loaded-gateway.ts";
import { measurePolls, type PollFigures, startControl } from "./polls.ts";
import { populate } from "./population.ts";

export async function measureDisplayPolls(
  ground: Ground,
  plan: { credentials: number; rounds: number },
): Promise<PollFigures> {
  const devices = await populate(ground.bus, 1, plan.credentials);
  const [first] = devices;
  if (first === undefined) throw new Error("There is nobody to poll.");
  const gateway = await startLoadedGateway(ground, devices);
  const controlPort = await freePort();
  const control = await startControl(ground, gateway.port, first, controlPort);
  // Two polls of each credential a round: learning, warming and three rounds stay within the burst of ten.
  const requestsPerRound = plan.credentials * 2;
  const figures = await measurePolls({
    ground,
    gateway,
    control: { pid: control.pid, port: controlPort },
    devices,
    rounds: plan.rounds,
    requestsPerRound,
  });
  await control.stop();
  await gateway.stop();
  return figures;
}
