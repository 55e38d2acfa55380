/** The items and prices that tills offer. */

import { priceOf } from "../../shared/amounts.ts";
import { Button } from "../../shared/button.tsx";
import { call } from "../../shared/call.ts";
import { money, samplePrice, typedAmount } from "../../shared/format.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { Table } from "../../shared/table.tsx";
import { TEXT_BOUNDS } from "../../shared/text-bounds.ts";
import { ask, type FormField, type FormValues, openForm } from "../shell/dialogs.tsx";
import { ChoiceFilter, EmptyList, FilterBar, useFilters } from "../shell/filters.tsx";
import { SectionHead } from "../shell/frame.tsx";
import { Listed, mapReply, pageOf, usePages } from "../shell/loading.tsx";
import { type Places, usePlaces } from "../shell/places.ts";
import { shellWords } from "../shell/words.ts";
import { words } from "./words.ts";

type Item = ReplyOf<"GET /api/backoffice/v1/catalogue-items/">["items"][number];

export function Catalogue() {
  const filters = useFilters();
  const { filial = "" } = filters.query;
  const places = usePlaces();
  const items = usePages(`catalogue ${filial}`, (since_id) =>
    mapReply(
      call("GET /api/backoffice/v1/catalogue-items/", { query: { since_id, filial_id: filial || undefined } }),
      (reply) => pageOf(reply.items, reply.has_more, (item) => item.item_id),
    ),
  );
  const found = places.data;
  return (
    <>
      <SectionHead name="catalogue" intro={words().intro}>
        {found !== null && (
          <Button kind="main" onClick={() => addItem(found, items.reload)}>
            {words().add}
          </Button>
        )}
      </SectionHead>
      <FilterBar filters={filters}>
        <ChoiceFilter
          filters={filters}
          name="filial"
          label={shellWords().filial}
          options={found?.filialOptions ?? []}
        />
      </FilterBar>
      <Listed of={items} empty={<EmptyList filters={filters} title={words().empty} text={words().emptyText} />}>
        {(rows) => (
          <Table
            caption={shellWords().nav.catalogue}
            rows={rows}
            keyOf={(item) => item.item_id}
            columns={[
              { title: words().item, cell: (item) => <strong>{item.name}</strong> },
              { title: words().category, cell: (item) => item.category },
              { title: words().price, isNumber: true, cell: (item) => money(item.unit_amount, item.currency) },
              {
                title: shellWords().filial,
                cell: (item) =>
                  item.filial_id === null ? shellWords().everyFilial : found?.filialName(item.filial_id),
              },
              {
                title: shellWords().actions,
                cell: (item) => (
                  <div class="cell-actions">
                    {found !== null && (
                      <Button onClick={() => changeItem(item, found, items.reload)}>{words().change}</Button>
                    )}
                    <Button kind="danger" onClick={() => removeItem(item, items.reload)}>
                      {words().remove}
                    </Button>
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

function fieldsOf(places: Places, currencyOf: (values: FormValues) => string, item?: Item): FormField[] {
  return [
    { name: "name", label: words().item, initial: item?.name ?? "", maxLength: TEXT_BOUNDS.name },
    {
      name: "category",
      label: words().category,
      help: words().categoryHelp,
      initial: item?.category ?? "",
      isOptional: true,
      maxLength: TEXT_BOUNDS.name,
    },
    {
      name: "unit_amount",
      label: words().price,
      inputMode: "decimal",
      initial: typedAmount(item?.unit_amount ?? ""),
      check: (value, values) => {
        const currency = currencyOf(values);
        return priceOf(value, currency) === undefined ? words().priceFault(samplePrice(currency)) : null;
      },
    },
    {
      name: "filial_id",
      label: shellWords().filial,
      initial: item?.filial_id === null || item === undefined ? "" : String(item.filial_id),
      isOptional: true,
      options: [{ value: "", text: shellWords().everyFilial }, ...places.filialOptions],
    },
  ];
}

const filialOf = (value: string | undefined): number | null => (value ? Number(value) : null);

function addItem(places: Places, then: () => unknown): void {
  const currencies = [...new Set(places.stations.map(({ currency }) => currency))];
  const options = (currencies.length > 0 ? currencies : ["EUR"]).map((value) => ({ value, text: value }));
  openForm({
    title: words().add,
    action: words().add,
    fields: [
      ...fieldsOf(places, ({ currency = "" }) => currency),
      { name: "currency", label: words().currency, options },
    ],
    run: ({ name = "", category = "", unit_amount = "", currency = "", filial_id }, key) =>
      call("POST /api/backoffice/v1/catalogue-items/", {
        body: {
          name,
          category,
          unit_amount: priceOf(unit_amount, currency) ?? unit_amount,
          currency,
          filial_id: filialOf(filial_id),
        },
        key,
      }),
    done: words().added,
    after: then,
  });
}

function changeItem(item: Item, places: Places, then: () => unknown): void {
  openForm({
    title: words().change,
    action: words().change,
    fields: fieldsOf(places, () => item.currency, item),
    run: (_values, _key, { name, category, unit_amount, filial_id }) =>
      call("PATCH /api/backoffice/v1/catalogue-items/{item_id}/", {
        path: { item_id: item.item_id },
        body: {
          name,
          category,
          unit_amount: unit_amount && (priceOf(unit_amount, item.currency) ?? unit_amount),
          filial_id: filial_id === undefined ? undefined : filialOf(filial_id),
        },
      }),
    done: words().changed,
    after: then,
  });
}

function removeItem(item: Item, then: () => unknown): void {
  ask({
    title: words().removeTitle(item.name),
    text: [words().removeText],
    action: words().remove,
    isDangerous: true,
    run: () => call("DELETE /api/backoffice/v1/catalogue-items/{item_id}/", { path: { item_id: item.item_id } }),
    done: words().removed,
    after: then,
  });
}
