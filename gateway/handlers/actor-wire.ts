/** Who caused something, for the wire. */
/**
 * Whoever operates the installation acts by way of the registry, which is what logs and tables say; to people it is the
 * platform that acted.
 */
export function actorWire<T extends { readonly kind: string }>(
  actor: T,
): Omit<T, "kind"> & { kind: Exclude<T["kind"], "registry"> | "platform" } {
  const kind = actor.kind === "registry" ? "platform" : (actor.kind as Exclude<T["kind"], "registry">);
  return { ...actor, kind };
}
