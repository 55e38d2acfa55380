-- The browsers in which each person has logged in, by the hash of a random text that the browser keeps in a cookie: guesses
-- from the same address cannot lock the person out there. The text opens nothing.
create table known_browsers (
  user_id bigint not null references users,
  token_hash bytea not null check (octet_length(token_hash) = 32),
  last_login_at timestamptz not null default now(),
  primary key (user_id, token_hash)
);
create index known_browsers_by_age on known_browsers (last_login_at);
