/** Certification artifacts: list, download, revoke. The command line records them, because the suite drives the device there. */
import { Button } from "../../shared/button.tsx";
import { addressOf, call } from "../../shared/call.ts";
import { now } from "../../shared/clock.ts";
import { dateAndTime } from "../../shared/format.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { Empty, Tag } from "../../shared/states.tsx";
import { Table } from "../../shared/table.tsx";
import { ask } from "../shell/dialogs.tsx";
import { SectionHead } from "../shell/frame.tsx";
import { Listed, mapReply, pageOf, usePages } from "../shell/loading.tsx";
import { shellWords } from "../shell/words.ts";
import { words } from "./words.ts";

const LIST = "GET /api/backoffice/v1/certification-artifacts/";
type Artifact = ReplyOf<typeof LIST>["certification_artifacts"][number];

export function Certificates() {
  const artifacts = usePages("artifacts", (before_id) =>
    mapReply(call(LIST, { query: { before_id } }), (reply) =>
      pageOf(reply.certification_artifacts, reply.has_more, (artifact) => artifact.artifact_id),
    ),
  );
  return (
    <>
      <SectionHead name="certificates" intro={words().intro} />
      <Listed of={artifacts} empty={<Empty title={words().empty}>{words().emptyText}</Empty>}>
        {(rows) => (
          <Table
            caption={shellWords().nav.certificates}
            rows={rows}
            keyOf={(artifact) => artifact.artifact_id}
            columns={[
              { title: words().provider, cell: (artifact) => <strong>{artifact.provider}</strong> },
              {
                title: words().software,
                cell: ({ model, software_version }) =>
                  model === null ? software_version : `${model} ${software_version}`,
              },
              { title: words().capability, cell: (artifact) => <code>{artifact.capability}</code> },
              { title: shellWords().status, cell: (artifact) => <Standing artifact={artifact} /> },
              { title: words().recorded, cell: (artifact) => dateAndTime(artifact.recorded_at) },
              { title: words().validUntil, cell: (artifact) => dateAndTime(artifact.valid_until) },
              {
                title: shellWords().actions,
                cell: (artifact) => (
                  <div class="cell-actions">
                    <a
                      class="button"
                      href={addressOf("GET /api/backoffice/v1/certification-artifacts/{artifact_id}/certificate/", {
                        path: { artifact_id: artifact.artifact_id },
                      })}
                      download={words().downloadName(artifact.artifact_id)}
                    >
                      {words().download}
                    </a>
                    {artifact.revocation === null && (
                      <Button kind="danger" onClick={() => revoke(artifact, artifacts.reload)}>
                        {words().revoke}
                      </Button>
                    )}
                  </div>
                ),
              },
            ]}
          />
        )}
      </Listed>
    </>
  );
}

function Standing({ artifact }: { readonly artifact: Artifact }) {
  const { revocation, valid_until } = artifact;
  if (revocation !== null) {
    return (
      <>
        <Tag tone="bad">{words().revoked}</Tag>
        <div class="small soft">
          {dateAndTime(revocation.revoked_at)} {words().by} {revocation.revoked_by.name}: {revocation.reason}
        </div>
      </>
    );
  }
  const isOver = Date.parse(valid_until) <= now.value;
  return <Tag tone={isOver ? "warn" : "good"}>{isOver ? words().expired : words().valid}</Tag>;
}

function revoke(artifact: Artifact, then: () => unknown): void {
  ask({
    title: words().revokeTitle(`${artifact.provider}, ${artifact.capability}`),
    text: [words().revokeText],
    action: words().revoke,
    isDangerous: true,
    asksReason: true,
    run: (reason) =>
      call("POST /api/backoffice/v1/certification-artifacts/{artifact_id}/revoke/", {
        path: { artifact_id: artifact.artifact_id },
        body: { reason },
      }),
    done: words().revokedDone,
    after: then,
  });
}
