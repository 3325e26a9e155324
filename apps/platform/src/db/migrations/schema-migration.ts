// The form of a migration: the module of every file in this folder has these exports. CONTRIBUTING.md has the rules for new migrations.
import type { Kysely } from 'kysely';

export type Version = `${number}.${number}.${number}`;

export interface SchemaMigration {
  /** Changes the tables. Runs once, in a transaction of its own. */
  readonly up: (db: Kysely<unknown>) => Promise<void>;
  /**
   * Oldest version of the product that can run on the database after this migration, at most the released version. The table
   * `schema_notes` keeps the value, because older versions know nothing else about the migration.
   */
  readonly oldestVersion: Version;
  /** Existing tables that are locked for a time that grows with their number of rows. Default: none. */
  readonly longLocks?: readonly string[];
  /**
   * Only for a migration that removes or narrows something in existing tables: the release that stopped using the removed parts. At most
   * `oldestVersion`, and never the upcoming version.
   */
  readonly unusedSince?: Version;
}
