// Types of the tables for connected apps, as used in queries.
import type { Generated } from 'kysely';
import type { GivenTimestamp, Timestamp } from './column-types.ts';

/** OAuth clients registered by an operator. */
export interface OauthClientsTable {
  id: string;
  name: string;
  /** Redirect URIs of the client, separated by spaces. */
  redirect_uris: string;
  created_at: GivenTimestamp;
  revoked_at: Timestamp | null;
}

export interface OauthRequestsTable {
  id: string;
  client_id: string;
  client_host: string;
  client_name: string;
  redirect_uri: string;
  code_challenge: string;
  resource: string;
  scope: string;
  state: string | null;
  created_at: GivenTimestamp;
  expires_at: Timestamp;
}

export interface OauthGrantsTable {
  id: Generated<string>;
  user_id: string;
  client_id: string;
  client_host: string;
  client_name: string;
  scope: string;
  resource: string;
  epoch: number;
  created_at: GivenTimestamp;
  /** Last use of the grant. Null if the authorization code was never used. */
  last_used_at: Timestamp | null;
  revoked_at: Timestamp | null;
}

export interface OauthCodesTable {
  code_hash: string;
  grant_id: string;
  redirect_uri: string;
  code_challenge: string;
  created_at: GivenTimestamp;
  expires_at: Timestamp;
  used_at: Timestamp | null;
}

export interface OauthRefreshTokensTable {
  token_hash: string;
  grant_id: string;
  created_at: GivenTimestamp;
  expires_at: Timestamp;
  rotated_at: Timestamp | null;
  grace_uses: Generated<number>;
}
