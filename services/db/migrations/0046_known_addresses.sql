-- Where each person has logged in from: guesses from elsewhere cannot lock them out there. Only a keyed hash of account and
-- address is stored, so that a row names no place.
create table known_addresses (
  user_id bigint not null references users,
  address_hash bytea not null check (octet_length(address_hash) = 32),
  last_login_at timestamptz not null default now(),
  primary key (user_id, address_hash)
);
create index known_addresses_by_age on known_addresses (last_login_at);
