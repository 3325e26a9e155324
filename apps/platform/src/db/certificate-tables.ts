// Types of the certificate tables, as used in queries.
import type { ColumnType, Generated } from 'kysely';
import type { BigCount, GivenTimestamp, Timestamp } from './column-types.ts';

export interface CertificatesTable {
  id: Generated<string>;
  directory: string;
  /** Host names of the certificate, sorted and separated by spaces. */
  names: string;
  has_wildcard: boolean;
  /** Account that owns the certificate. Null for a certificate of the operator. */
  user_id: string | null;
  life: ColumnType<Record<string, unknown>, string, string>;
  due_at: Timestamp;
  suspended: Generated<boolean>;
  /** Private key of the current order, encrypted like the key in `certificate`. */
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
