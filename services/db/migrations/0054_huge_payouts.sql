-- A sum of more than 18 digits is no payout: no line can have such an amount (FORMAT_LIMITS.amountDigits). It overflowed, and the
-- banks of the organization could no longer be compared.
create or replace function expected_payouts(the_account_id bigint, the_from date, the_to date)
returns table(payment_key text, amount_minor bigint, currency text, provider_key text, our_key text, paid_on date)
language sql stable as $function$
  with movement as (
    select l.account_id, l.currency, l.payout_reference, l.provider_reference, l.fingerprint, l.kind,
      coalesce(l.value_on, l.booked_on) as paid_on,
      case when l.kind = 'payout' then -l.amount_minor else coalesce(l.net_minor, l.amount_minor + coalesce(l.fee_minor, 0)) end as minor,
      l.kind = 'payout' and l.payout_reference = '' and l.provider_reference <> '' and exists (
        select from statement_lines s where s.account_id = l.account_id and s.provider_reference = l.provider_reference
          and s.kind in ('payment', 'refund')) as is_share
    from statement_lines l
    where l.account_id = the_account_id and l.booked_on between the_from and the_to
      and (l.kind = 'payout' or (l.payout_reference <> '' and l.kind not in ('planned_payout', 'payout_reversal', 'not_money')))
  ),
  -- The lines of a payout count only where the statement has no line of the payout itself.
  counted as (
    select m.*, case when payout_reference <> '' then 'reference:' || payout_reference || ':' || currency
        when is_share then 'day:' || paid_on || ':' || currency else encode(fingerprint, 'hex') end as name
    from movement m
    where (m.kind = 'payout' or not exists (
        select from statement_lines p where p.account_id = the_account_id and p.payout_reference = m.payout_reference
          and (p.kind in ('payout', 'planned_payout')
            or (p.currency <> m.currency and p.kind not in ('payout_reversal', 'not_money')))))
      and (m.payout_reference = '' or not exists (
        select from statement_lines r where r.account_id = the_account_id and r.payout_reference = m.payout_reference
          and r.kind = 'payout_reversal'))
  )
  select 'payout:' || the_account_id || ':' || name, sum(minor)::bigint, currency,
    case when count(distinct provider_reference) = 1 and not bool_or(is_share) then comparable_reference(min(provider_reference)) end,
    comparable_reference(min(payout_reference)), max(paid_on)
  from counted group by name, currency having sum(minor) between 1 and 999999999999999999
$function$;
