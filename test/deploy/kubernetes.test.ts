/** The Kubernetes manifests, by the API's own schemas, and against the settings of the processes that they start. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Deployment } from "kubernetes-models/apps/v1";
import { Job } from "kubernetes-models/batch/v1";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1";
import { ConfigMap, Namespace, Secret, Service } from "kubernetes-models/v1";
import { describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { expectSettings, PRODUCTION_SERVICES } from "../support/published-processes.ts";

const FOLDER = join(import.meta.dirname, "..", "..", "deploy", "production", "kubernetes");
const KINDS = { ConfigMap, Deployment, Job, Namespace, PodDisruptionBudget, Secret, Service } as const;

interface Manifest {
  readonly kind: keyof typeof KINDS;
  readonly metadata: { readonly name: string };
}
const read = (file: string): readonly Manifest[] =>
  parseAllDocuments(readFileSync(join(FOLDER, file), "utf8")).map((document) => document.toJS() as Manifest);
const kustomization = parse(readFileSync(join(FOLDER, "kustomization.yaml"), "utf8")) as {
  readonly resources: readonly string[];
  readonly images: readonly { readonly name: string }[];
};
const manifests = kustomization.resources.flatMap(read);
const secrets = read("secrets.example.yaml") as readonly (Manifest & { readonly stringData: object })[];

const deployments = manifests
  .filter(({ kind }) => kind === "Deployment")
  .map((manifest) => new Deployment(manifest as ConstructorParameters<typeof Deployment>[0]));

/** The names that a pod's one container gets from secrets and from what is not secret. */
function givenTo(container: {
  readonly envFrom?: readonly { secretRef?: { name?: string }; configMapRef?: object }[];
}) {
  const sources = container.envFrom ?? [];
  const fromSecrets = sources.flatMap(({ secretRef }) => {
    const secret = secrets.find(({ metadata }) => metadata.name === secretRef?.name);
    return secretRef === undefined ? [] : Object.keys(secret?.stringData ?? { [`no secret ${secretRef.name}`]: "" });
  });
  const shared = manifests.find(({ metadata }) => metadata.name === "settings") as unknown as { data: object };
  return { fromSecrets, shared: sources.some((each) => each.configMapRef) ? Object.keys(shared.data) : [] };
}

describe("the manifests", () => {
  it.each([...manifests, ...secrets].map((each) => [`${each.kind} ${each.metadata.name}`, each] as const))(
    "%s: it is valid by the API's schema",
    (_, manifest) => {
      const Kind = KINDS[manifest.kind] as unknown as new (value: object) => { validate(): void };
      expect(() => new Kind(manifest).validate()).not.toThrow();
    },
  );

  it("each deployment: two copies on different nodes, a budget, probes, and no rights", () => {
    expect(deployments).toHaveLength(4);
    for (const { metadata, spec } of deployments) {
      const name = metadata?.name ?? "";
      const budget = manifests.find((each) => each.kind === "PodDisruptionBudget" && each.metadata.name === name);
      expect(budget, name).toMatchObject({ spec: { minAvailable: 1, selector: spec?.selector } });
      expect(spec?.replicas, name).toBeGreaterThanOrEqual(2);
      expect(spec?.strategy?.rollingUpdate, name).toEqual({ maxSurge: 1, maxUnavailable: 0 });
      const pod = spec?.template.spec;
      expect(
        pod?.topologySpreadConstraints?.map(({ topologyKey }) => topologyKey),
        name,
      ).toEqual(["kubernetes.io/hostname", "topology.kubernetes.io/zone"]);
      expect(pod?.securityContext, name).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 });
      // Before its end a copy waits 5 seconds, and then takes 10 at most.
      expect(pod?.terminationGracePeriodSeconds, name).toBeGreaterThan(15);
      const [container] = pod?.containers ?? [];
      expect(container?.livenessProbe?.httpGet, name).toEqual({ path: "/healthz", port: "metrics" });
      for (const probe of [container?.readinessProbe, container?.startupProbe]) {
        expect(probe?.httpGet, name).toEqual({ path: "/readyz", port: "metrics" });
      }
      expect(container?.securityContext, name).toMatchObject({
        readOnlyRootFilesystem: true,
        allowPrivilegeEscalation: false,
        capabilities: { drop: ["ALL"] },
      });
      expect(container?.resources?.limits, name).toHaveProperty("memory");
    }
  });

  it("each process: it has the settings that it needs, and no secret of another one", async () => {
    const jobs = manifests.filter(({ kind }) => kind === "Job") as unknown as readonly Job[];
    const containers = [...deployments, ...jobs].map(({ spec }) => spec?.template.spec?.containers[0]);
    for (const container of containers) {
      const { fromSecrets, shared } = givenTo(container ?? {});
      await expectSettings(container?.args ?? [], [...fromSecrets, ...shared], shared);
    }
    const named = deployments.flatMap(({ spec }) => spec?.template.spec?.containers[0]?.args?.slice(1) ?? []);
    expect(new Set(named)).toEqual(new Set(PRODUCTION_SERVICES));
  });

  it("the image: each container's is the one that the kustomization names", () => {
    const images = deployments.map(({ spec }) => spec?.template.spec?.containers[0]?.image);
    expect(new Set(images)).toEqual(new Set(kustomization.images.map(({ name }) => name)));
  });
});
