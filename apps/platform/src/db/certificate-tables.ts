// The tables of certificates as the queries see them.
import type { ColumnType, Generated } from 'kysely';
import type { BigCount, GivenTimestamp, Timestamp } from './column-types.ts';

export interface CertificatesTable {
  id: Generated<string>;
  directory: string;
  /** Separated by spaces, sorted. */
  names: string;
  has_wildcard: boolean;
  /** null: the operator's own. */
  user_id: string | null;
  life: ColumnType<Record<string, unknown>, string, string>;
  due_at: Timestamp;
  suspended: Generated<boolean>;
  /** Sealed, as the key in `certificate` is. */
  order_key: string | null;
  certificate: ColumnType<Record<string, unknown> | null, string | null, string | null>;
  locked_by: string | null;
  locked_until: Timestamp | null;
  epoch: BigCount;
  created_at: GivenTimestamp;
}

export interface AcmeAccountsTable {
  directory: string;
  key: string;
  url: string | null;
  email: string;
}

export interface AcmeChallengesTable {
  directory: string;
  asked_by: string;
  type: string;
  name: string;
  token: string;
  key_authorization: string;
  expires_at: Timestamp;
}

export interface AcmeBudgetsTable {
  directory: string;
  name: string;
  taken_at: ColumnType<unknown, string | undefined, string>;
}

export interface AcmeAuthorityTable {
  only_one: Generated<boolean>;
  directory: string;
}
