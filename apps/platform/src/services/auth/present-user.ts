// A user as the API shows one.
import type { UserPublic } from '@tunnel/contract';
import type { Selectable } from 'kysely';
import type { UsersTable } from '../../db/schema.ts';

export const SHOWN_USER_COLUMNS = [
  'id',
  'email',
  'display_name',
  'email_verified_at',
  'status',
  'auth_method',
  'created_at',
] as const;

export type ShownUserRow = Pick<Selectable<UsersTable>, (typeof SHOWN_USER_COLUMNS)[number]>;

export const presentUser = (row: ShownUserRow): UserPublic => ({
  id: row.id,
  email: row.email,
  display_name: row.display_name,
  email_verified: row.email_verified_at !== null,
  status: row.status,
  auth_method: row.auth_method,
  created_at: row.created_at.toISOString(),
});
