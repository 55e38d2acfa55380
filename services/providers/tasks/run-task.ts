/** What each kind of task does. Any of them may be done twice, after a crash at the worst moment. */
import type { ProvidersDeps } from "../deps.ts";
import { findConfigById } from "../sql/configs.ts";
import { findPayment } from "../sql/payments.ts";
import { confirmAtStation } from "./confirm.ts";
import { pollProvider } from "./poll.ts";
import type { TaskResult } from "./task-result.ts";
import type { KnownTask } from "./task-runner.ts";
import { clearAtStation, failAtStation, tellOfDifference } from "./tell-station.ts";
import { withdrawAtProvider } from "./withdraw.ts";

export async function runTask(deps: ProvidersDeps, task: KnownTask): Promise<TaskResult> {
  const payment = task.payment ?? (await findPayment(deps.database, task.intentId));
  if (payment === undefined) return { outcome: "no_payment" };
  switch (task.kind) {
    case "confirm":
      return await confirmAtStation(deps, task, payment);
    case "fail":
      return await failAtStation(deps, task, payment);
    case "clear":
      return await clearAtStation(deps, task, payment);
    case "differ":
      return await tellOfDifference(deps, task, payment);
    case "poll":
    case "withdraw": {
      const config = await findConfigById(deps.database, payment.config_id);
      if (config === undefined) return { outcome: "no_config" };
      return await (task.kind === "poll" ? pollProvider : withdrawAtProvider)(deps, task, { payment, config });
    }
  }
}
