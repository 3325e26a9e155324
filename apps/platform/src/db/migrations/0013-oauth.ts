// Creates the OAuth authorization server: clients registered by the operator, authorization requests waiting for the user, and grants
// with codes and refresh tokens.
import { type Kysely, sql } from 'kysely';

export const oldestVersion = '0.1.0';

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await clients(db);
  await requests(db);
  await grants(db);
};

const clients = async (db: Kysely<unknown>): Promise<void> => {
  await sql`
    create table oauth_clients (
      -- The client_id; of clients that have a metadata document it is a URL, and no row.
      id text primary key,
      name text not null,
      -- Separated by spaces: no URI has one.
      redirect_uris text not null,
      created_at timestamptz not null default now(),
      revoked_at timestamptz
    )`.execute(db);
};

const requests = async (db: Kysely<unknown>): Promise<void> => {
  // All columns were validated when the request arrived, so the user decides about exactly the requested access. The decision deletes the
  // row.
  await sql`
    create table oauth_requests (
      id text primary key,
      client_id text not null,
      client_host text not null,
      client_name text not null,
      redirect_uri text not null,
      code_challenge text not null,
      resource text not null,
      scope text not null,
      state text,
      created_at timestamptz not null default now(),
      expires_at timestamptz not null
    )`.execute(db);
  await sql`create index oauth_requests_by_expiry on oauth_requests (expires_at)`.execute(db);
};

const grants = async (db: Kysely<unknown>): Promise<void> => {
  await sql`
    create table oauth_grants (
      id uuid primary key default gen_random_uuid(),
      user_id uuid not null references users (id) on delete cascade,
      client_id text not null,
      client_host text not null,
      client_name text not null,
      -- Separated by spaces, as everywhere in OAuth.
      scope text not null,
      -- The audience of its access tokens.
      resource text not null,
      -- That of the account when it was given: a new password and a suspension raise it, and end the grant.
      epoch integer not null,
      created_at timestamptz not null default now(),
      -- null: its code was never used.
      last_used_at timestamptz,
      revoked_at timestamptz
    )`.execute(db);
  await sql`create index oauth_grants_of_user on oauth_grants (user_id)`.execute(db);
  await sql`create index oauth_grants_of_client on oauth_grants (client_id)`.execute(db);

  await sql`
    create table oauth_codes (
      -- SHA-256 in hex.
      code_hash text primary key,
      grant_id uuid not null references oauth_grants (id) on delete cascade,
      redirect_uri text not null,
      -- S256: the SHA-256 of the verifier in base64url.
      code_challenge text not null,
      created_at timestamptz not null default now(),
      expires_at timestamptz not null,
      -- A second use revokes the grant.
      used_at timestamptz
    )`.execute(db);
  await sql`create index oauth_codes_of_grant on oauth_codes (grant_id)`.execute(db);

  // A separate table from refresh_tokens, because an OAuth refresh token must never open a dashboard session, nor count as a device of
  // the account's owner.
  await sql`
    create table oauth_refresh_tokens (
      token_hash text primary key,
      grant_id uuid not null references oauth_grants (id) on delete cascade,
      created_at timestamptz not null default now(),
      expires_at timestamptz not null,
      -- When its first successor was given out.
      rotated_at timestamptz,
      -- Successors given out after the first.
      grace_uses integer not null default 0
    )`.execute(db);
  await sql`create index oauth_refresh_tokens_of_grant on oauth_refresh_tokens (grant_id)`.execute(db);
  await sql`create index oauth_refresh_tokens_by_expiry on oauth_refresh_tokens (expires_at)`.execute(db);
};
