/** Payment providers for QR codes, test and live. */
import { Button } from "../../shared/button.tsx";
import { call } from "../../shared/call.ts";
import { dateAndTime } from "../../shared/format.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { Empty, Tag } from "../../shared/states.tsx";
import { Table } from "../../shared/table.tsx";
import { TEXT_BOUNDS } from "../../shared/text-bounds.ts";
import { ask, type FormField, type FormValues, openForm, showOnce } from "../shell/dialogs.tsx";
import { SectionHead } from "../shell/frame.tsx";
import { label, optionsOf } from "../shell/labels.ts";
import { Listed, mapReply, pageOf, usePages } from "../shell/loading.tsx";
import { type Places, usePlaces } from "../shell/places.ts";
import { StatusTag } from "../shell/status-tag.tsx";
import { shellWords } from "../shell/words.ts";
import { words } from "./words.ts";

type Config = ReplyOf<"GET /api/backoffice/v1/provider-configs/">["provider_configs"][number];
type WithSecrets = ReplyOf<"POST /api/backoffice/v1/provider-configs/">;
const KINDS = ["sandbox", "emvco_generic"] as const satisfies readonly Config["kind"][];
const MODES = ["live", "test"] as const satisfies readonly Config["mode"][];

export function Providers() {
  const places = usePlaces();
  const configs = usePages("providers", (since_id) =>
    mapReply(call("GET /api/backoffice/v1/provider-configs/", { query: { since_id } }), (reply) =>
      pageOf(reply.provider_configs, reply.has_more, (config) => config.config_id),
    ),
  );
  const found = places.data;
  return (
    <>
      <SectionHead name="providers" intro={words().intro}>
        {found !== null && found.filials.length > 0 && (
          <Button kind="main" onClick={() => addProvider(found, configs.reload)}>
            {words().add}
          </Button>
        )}
      </SectionHead>
      <Listed of={configs} empty={<Empty title={words().empty}>{words().emptyText}</Empty>}>
        {(rows) => (
          <Table
            caption={shellWords().nav.providers}
            rows={rows}
            keyOf={(config) => config.config_id}
            columns={[
              {
                title: words().provider,
                cell: (config) => (
                  <>
                    <strong>{config.name}</strong>
                    <div class="small soft">{words().kinds[config.kind]}</div>
                  </>
                ),
              },
              { title: shellWords().filial, cell: (config) => found?.filialName(config.filial_id) ?? "" },
              {
                title: words().mode,
                cell: (config) => (
                  <Tag tone={config.mode === "live" ? "accent" : "plain"}>{label("mode", config.mode)}</Tag>
                ),
              },
              { title: shellWords().status, cell: (config) => <StatusTag status={config.status} /> },
              {
                title: words().secrets,
                cell: (config) =>
                  config.secrets.map((secret) => (
                    <div key={`${secret.name} ${secret.created_at}`} class="small">
                      <code>{secret.name}</code>{" "}
                      {secret.expires_at === null
                        ? `${words().since} ${dateAndTime(secret.created_at)}`
                        : `${words().until} ${dateAndTime(secret.expires_at)}`}
                    </div>
                  )),
              },
              { title: words().callback, cell: (config) => <code class="small">{config.callback_path}</code> },
              { title: shellWords().actions, cell: (config) => <Actions config={config} reload={configs.reload} /> },
            ]}
          />
        )}
      </Listed>
    </>
  );
}

function showSecrets({ provider_config, new_secrets }: WithSecrets, then: () => unknown): unknown {
  const values = Object.entries(new_secrets).map(([name, value]) => ({ label: name, value }));
  if (values.length > 0) showOnce({ title: words().newSecrets(provider_config.name), values });
  return then();
}

const isEmvco = ({ kind }: FormValues): boolean => kind === "emvco_generic";

function addProvider(places: Places, then: () => unknown): void {
  openForm({
    title: words().add,
    action: words().add,
    fields: [
      { name: "filial_id", label: shellWords().filial, options: places.filialOptions },
      { name: "kind", label: words().kind, options: KINDS.map((value) => ({ value, text: words().kinds[value] })) },
      // The sandbox provider moves no money, so it is for tests only.
      { name: "mode", label: words().mode, options: optionsOf("mode", MODES), when: isEmvco },
      { name: "name", label: shellWords().name, maxLength: TEXT_BOUNDS.name },
      ...emvcoFields(),
    ],
    run: (values) =>
      call("POST /api/backoffice/v1/provider-configs/", {
        body: {
          filial_id: Number(values.filial_id),
          kind: values.kind as Config["kind"],
          mode: isEmvco(values) ? (values.mode as Config["mode"]) : "test",
          name: values.name ?? "",
          settings: isEmvco(values) ? emvcoSettings(values) : {},
        },
      }),
    after: (reply) => showSecrets(reply, then),
  });
}

const ACCOUNT_SETTINGS = ["tag", "guid", "merchant_id", "terminal_id"];

function emvcoFields(): readonly FormField[] {
  const fields: readonly FormField[] = [
    { name: "guid", label: words().guid, maxLength: 32 },
    { name: "tag", label: words().tag, initial: "26", maxLength: 2 },
    { name: "merchant_id", label: words().merchantId },
    { name: "terminal_id", label: words().terminalId, isOptional: true },
    { name: "category_code", label: words().categoryCode, initial: "5812", maxLength: 4 },
    { name: "country", label: words().country, maxLength: 2 },
    { name: "merchant_name", label: words().merchantName, maxLength: 25 },
    { name: "merchant_city", label: words().merchantCity, maxLength: 15 },
    { name: "postal_code", label: words().postalCode, isOptional: true, maxLength: 10 },
  ];
  return fields.map((field) => {
    const parent = ACCOUNT_SETTINGS.includes(field.name) ? "/settings/merchant_account" : "/settings";
    return { ...field, when: isEmvco, pointer: `${parent}/${field.name}` };
  });
}

/** Only what was filled in: the service checks the rest. */
function emvcoSettings(values: FormValues): Record<string, unknown> {
  const filled = (names: readonly string[]) =>
    Object.fromEntries(names.map((name) => [name, values[name] ?? ""]).filter(([, value]) => value !== ""));
  return {
    merchant_account: filled(ACCOUNT_SETTINGS),
    ...filled(["category_code", "merchant_name", "merchant_city", "postal_code"]),
    country: (values.country ?? "").toUpperCase(),
  };
}

function Actions({ config, reload }: { readonly config: Config; readonly reload: () => unknown }) {
  const path = { config_id: config.config_id };
  const isActive = config.status === "active";
  const rename = (): void =>
    openForm({
      title: words().rename,
      action: words().rename,
      fields: [{ name: "name", label: shellWords().name, initial: config.name, maxLength: TEXT_BOUNDS.name }],
      run: ({ name = "" }) => call("PATCH /api/backoffice/v1/provider-configs/{config_id}/", { path, body: { name } }),
      done: words().renamed,
      after: reload,
    });
  const move = (): void =>
    ask({
      title: isActive ? words().disableTitle(config.name) : words().enableTitle(config.name),
      text: [isActive ? words().disableText : words().enableText],
      action: isActive ? words().disable : words().enable,
      isDangerous: isActive,
      asksReason: true,
      run: (reason) =>
        call("PATCH /api/backoffice/v1/provider-configs/{config_id}/", {
          path,
          body: { status: isActive ? "disabled" : "active", reason },
        }),
      done: isActive ? words().disabled : words().enabled,
      after: reload,
    });
  const rotate = (): void =>
    openForm({
      title: words().rotate,
      intro: words().rotateIntro,
      action: words().rotate,
      fields: [
        {
          name: "name",
          label: words().which,
          options: [...new Set(config.secrets.map(({ name }) => name))].map((value) => ({ value, text: value })),
        },
        { name: "overlap", label: words().overlap, initial: "86400", options: overlapOptions() },
      ],
      run: ({ name = "", overlap }) =>
        call("POST /api/backoffice/v1/provider-configs/{config_id}/rotate/", {
          path,
          body: { name, overlap_seconds: Number(overlap) },
        }),
      after: (reply) => showSecrets(reply, reload),
    });
  return (
    <div class="cell-actions">
      <Button onClick={rename}>{words().rename}</Button>
      {config.secrets.length > 0 && <Button onClick={rotate}>{words().rotate}</Button>}
      <Button kind={isActive ? "danger" : undefined} onClick={move}>
        {isActive ? words().disable : words().enable}
      </Button>
    </div>
  );
}

/** How long the old secret stays valid beside the new one. */
export function overlapOptions() {
  const { none, hour, day, week } = words().overlaps;
  return [
    { value: "86400", text: day },
    { value: "604800", text: week },
    { value: "3600", text: hour },
    { value: "0", text: none },
  ];
}
