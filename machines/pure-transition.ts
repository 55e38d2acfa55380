/**
 * One pure step of an XState machine from a stored state: resolve, transition, compare. A live actor would act before
 * the commit, so none is ever started (reference "XState on a server").
 */
import { type AnyMachineSnapshot, type AnyStateMachine, type ContextFrom, type EventFrom, transition } from "xstate";

export interface MachineStep<TContext> {
  readonly value: string;
  readonly context: TContext;
}

/**
 * The next state and context, or undefined when the machine does not take this event in this state. An event that is
 * taken always changes the state or replaces the context object, which is how the two cases are told apart.
 */
export function take<TMachine extends AnyStateMachine>(
  machine: TMachine,
  from: MachineStep<ContextFrom<TMachine>>,
  event: EventFrom<TMachine>,
): MachineStep<ContextFrom<TMachine>> | undefined {
  const any: AnyStateMachine = machine;
  const before: AnyMachineSnapshot = any.resolveState({ value: from.value, context: from.context });
  const [after] = transition(any, before, event) as [AnyMachineSnapshot, unknown];
  if (after.value === before.value && after.context === before.context) return undefined;
  return { value: after.value as string, context: after.context as ContextFrom<TMachine> };
}
