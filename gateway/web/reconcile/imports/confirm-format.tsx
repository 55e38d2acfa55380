/** The formats that the beginning of a file fits. A person confirms a format and an encoding, or maps the columns. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Button } from "../../shared/button.tsx";
import { call } from "../../shared/call.ts";
import type { Failure } from "../../shared/failures.ts";
import { Choice } from "../../shared/field.tsx";
import type { ReplyOf } from "../../shared/operations.ts";
import { FailureNotice, Notice, Skeleton } from "../../shared/states.tsx";
import { Refusal } from "../refusal.tsx";
import { words } from "../words.ts";
import { MappingForm } from "./mapping-form.tsx";
import { WhyRefused } from "./why-refused.tsx";

type Candidates = NonNullable<ReplyOf<"GET /api/reconciliation/v1/imports/{import_id}/">["candidates"]>;
type Encoding = Candidates["encodings"][number]["encoding"];
type Mapping = ReplyOf<"GET /api/reconciliation/v1/statement-mappings/">["statement_mappings"][number];

interface ConfirmProps {
  readonly importId: number;
  readonly onChanged: () => Promise<void>;
}

/** A format that needs no mapping. The service reads a plain CSV file only with a mapping. */
const isReadable = ({ name }: Candidates["formats"][number]): boolean => name !== "csv";

export function ConfirmFormat({ importId, onChanged }: ConfirmProps) {
  const candidates = useSignal<Candidates | null>(null);
  const failure = useSignal<Failure | null>(null);
  const path = { import_id: importId };
  const load = async (): Promise<void> => {
    const found = await call("GET /api/reconciliation/v1/imports/{import_id}/", { path });
    failure.value = found.ok ? null : found;
    if (found.ok) candidates.value = found.reply.candidates;
  };
  useEffect(() => void load(), [importId]);
  const confirm = async (body: Parameters<typeof confirmBody>[0]): Promise<void> => {
    const done = await call("POST /api/reconciliation/v1/imports/{import_id}/confirm/", {
      path,
      body: confirmBody(body),
    });
    failure.value = done.ok ? null : done;
    if (done.ok) await onChanged();
  };
  const texts = words().confirm;
  const known = candidates.value;
  if (known === null) {
    return failure.value === null ? <Skeleton blocks={1} /> : <FailureNotice failure={failure.value} onRetry={load} />;
  }
  if (known.refusal !== null) {
    return (
      <Notice tone="bad" title={texts.unreadable}>
        <WhyRefused {...known.refusal} />
      </Notice>
    );
  }
  const readable = known.formats.filter(isReadable);
  return (
    <div class="stack">
      {readable.length > 0 && <KnownFormat candidates={known} formats={readable} onConfirm={confirm} />}
      <details open={readable.length === 0}>
        <summary>{texts.mappingTitle}</summary>
        <WithMapping importId={importId} candidates={known} onConfirm={confirm} />
      </details>
      {failure.value !== null && <Refusal failure={failure.value} />}
    </div>
  );
}

const confirmBody = <
  T extends { readonly format: string; readonly encoding: Encoding } | { readonly mapping_id: number },
>(
  body: T,
): T => body;
type OnConfirm = (body: Parameters<typeof confirmBody>[0]) => Promise<void>;

interface KnownProps {
  readonly candidates: Candidates;
  readonly formats: Candidates["formats"];
  readonly onConfirm: OnConfirm;
}

function KnownFormat({ candidates, formats, onConfirm }: KnownProps) {
  const format = useSignal(formats[0]?.name ?? "");
  const encoding = useSignal<Encoding>(candidates.encodings[0]?.encoding ?? "utf-8");
  const texts = words().confirm;
  const sample = candidates.encodings.find((each) => each.encoding === encoding.value)?.sample ?? "";
  return (
    <div class="stack">
      <p>{sample === "" ? texts.helpFormat : texts.help}</p>
      <div class="filter-fields">
        <Choice
          label={texts.format}
          value={format.value}
          onChange={(value) => {
            format.value = value;
          }}
          options={formats.map(({ name, title }) => ({ value: name, text: title }))}
        />
        <Choice
          label={texts.encoding}
          value={encoding.value}
          onChange={(value) => {
            encoding.value = value;
          }}
          options={candidates.encodings.map((each) => ({ value: each.encoding, text: each.encoding }))}
        />
      </div>
      {sample !== "" && <Sample text={sample} />}
      <p>
        <Button kind="main" onClick={() => onConfirm({ format: format.peek(), encoding: encoding.peek() })}>
          {texts.action}
        </Button>
      </p>
    </div>
  );
}

/** A part of the file in the chosen encoding. A person sees wrong letters when the encoding is wrong. */
function Sample({ text }: { readonly text: string }) {
  return (
    <figure class="stack-tight">
      <figcaption class="small soft">{words().confirm.sample}</figcaption>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre class="said" tabIndex={0}>
        {text}
      </pre>
    </figure>
  );
}

interface MappingProps {
  readonly importId: number;
  readonly candidates: Candidates;
  readonly onConfirm: OnConfirm;
}

function WithMapping({ importId, candidates, onConfirm }: MappingProps) {
  const mappings = useSignal<readonly Mapping[]>([]);
  const chosen = useSignal("");
  const texts = words().confirm;
  const load = async (): Promise<void> => {
    const query = { versions: "newest", limit: 500 } as const;
    const listed = await call("GET /api/reconciliation/v1/statement-mappings/", { query });
    if (listed.ok) mappings.value = listed.reply.statement_mappings;
  };
  useEffect(() => void load(), []);
  return (
    <div class="stack mapping">
      {mappings.value.length > 0 && (
        <div class="row">
          <Choice
            label={texts.stored}
            value={chosen.value}
            onChange={(value) => {
              chosen.value = value;
            }}
            options={[
              { value: "", text: texts.newMapping },
              ...mappings.value.map(({ mapping_id, name, version }) => ({
                value: String(mapping_id),
                text: `${name} (${version})`,
              })),
            ]}
          />
          {chosen.value !== "" && (
            <Button kind="main" onClick={() => onConfirm({ mapping_id: Number(chosen.peek()) })}>
              {texts.action}
            </Button>
          )}
        </div>
      )}
      {chosen.value === "" && (
        <MappingForm
          importId={importId}
          encoding={candidates.encodings[0]?.encoding ?? "utf-8"}
          onStored={(mappingId) => onConfirm({ mapping_id: mappingId })}
        />
      )}
    </div>
  );
}
