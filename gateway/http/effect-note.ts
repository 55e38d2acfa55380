/** Whether all changes that one request made are effective at this gateway; noted by its calls of services (`gateway-bus.ts`). */
export interface Effect {
  isEffective: boolean;
}
