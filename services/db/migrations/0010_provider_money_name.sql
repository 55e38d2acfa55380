-- The name of an asserted payment (services/bus/messages/intents.ts) in the form in which names are compared: the
-- provider's reference without surrounding white space and in Unicode form NFC. Null where the provider gave no reference.
create function provider_money_name(the_name text) returns text immutable language sql as $$
  select case when the_name like 'money:%' then
    'money:' || nullif(btrim(normalize(substr(the_name, 7), NFC),
      E' \t\n\u000B\f\r\u00A0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200A\u2028\u2029\u202F\u205F\u3000\uFEFF'), '')
    when the_name like 'money-sha256:%' then the_name
  end
$$;
