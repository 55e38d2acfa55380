/**
 * One pure step of an XState machine from a stored state. A live actor would act before the commit, so none is ever
 * started (reference "XState on a server").
 *
 * XState's own `transition()` builds a whole actor for each call (about 30 µs). The machine's `transition` method is the
 * same computation in a scope that its caller owns (about 6 µs), so one inert scope per machine is made and kept; a test
 * holds the two equal for every state and event.
 */
import {
  type ActorScope,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type ContextFrom,
  createActor,
  type EventFrom,
  type EventObject,
} from "xstate";

export interface MachineStep<TContext> {
  readonly value: string;
  readonly context: TContext;
}

type InertScope = ActorScope<AnyMachineSnapshot, EventObject>;

/** One scope per machine; a program has a handful of machines, all of them module constants. */
const scopes = new WeakMap<AnyStateMachine, InertScope>();

/**
 * The next state and context, or undefined when the machine does not take this event in this state. An event may be
 * taken without changing anything (a reset of a device that is pending already): that is a step, not undefined.
 */
export function take<TMachine extends AnyStateMachine>(
  machine: TMachine,
  from: MachineStep<ContextFrom<TMachine>>,
  event: EventFrom<TMachine>,
): MachineStep<ContextFrom<TMachine>> | undefined {
  const any: AnyStateMachine = machine;
  const before: AnyMachineSnapshot = any.resolveState({ value: from.value, context: from.context });
  if (!before.can(event)) return undefined;
  const after = any.transition(before, event, inertScope(any)) as AnyMachineSnapshot;
  return { value: after.value as string, context: after.context as ContextFrom<TMachine> };
}

function inertScope(machine: AnyStateMachine): InertScope {
  const known = scopes.get(machine);
  if (known !== undefined) return known;
  const self = createActor(machine) as InertScope["self"];
  const scope: InertScope = {
    self,
    id: "",
    sessionId: "",
    system: self.system,
    logger: () => {},
    defer: refuseEffect,
    emit: refuseEffect,
    stopChild: refuseEffect,
    actionExecutor: refuseEffect,
  };
  scopes.set(machine, scope);
  return scope;
}

/** A machine that acts on the world has no place in a pure step; `assign` is the only action that machines use. */
function refuseEffect(): never {
  throw new Error("A machine tried to act inside a pure step.");
}
