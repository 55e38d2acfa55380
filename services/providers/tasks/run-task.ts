/** What each kind of task does. Any of them may be done twice, after a crash at the worst moment. */
import type { ProvidersDeps } from "../deps.ts";
import { findConfigById } from "../sql/configs.ts";
import { findPayment } from "../sql/payments.ts";
import type { Task } from "../sql/tasks.ts";
import { confirmAtStation } from "./confirm.ts";
import { pollProvider } from "./poll.ts";
import type { TaskResult } from "./task-result.ts";
import { clearAtStation, failAtStation } from "./tell-station.ts";
import { withdrawAtProvider } from "./withdraw.ts";

export async function runTask(deps: ProvidersDeps, task: Task): Promise<TaskResult> {
  const payment = await findPayment(deps.database, task.intentId);
  if (payment === undefined) return { outcome: "no_payment" };
  switch (task.kind) {
    case "confirm":
      return await confirmAtStation(deps, task, payment);
    case "fail":
      return await failAtStation(deps, task, payment);
    case "clear":
      return await clearAtStation(deps, task, payment);
    case "poll":
    case "withdraw": {
      const config = await findConfigById(deps.database, payment.config_id);
      if (config === undefined) return { outcome: "no_config" };
      return await (task.kind === "poll" ? pollProvider : withdrawAtProvider)(deps, task, { payment, config });
    }
  }
}
