// Creates the notes about migrations. From a note, a server that does not know a migration learns whether it can run on the database.
import { type Kysely, sql } from 'kysely';

/** Version 0.2.0 is the first that reads the notes. Older versions refuse to start on a database with this migration. */
export const oldestVersion = '0.2.0';

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await sql`
    create table schema_notes (
      migration text primary key,
      -- Oldest version of the product that can run on the database after the migration.
      oldest_version text not null
    )`.execute(db);
  // All earlier migrations are part of version 0.1.0.
  await sql`insert into schema_notes (migration, oldest_version) select name, '0.1.0' from kysely_migration`.execute(
    db,
  );
};
