// Servers that share a database, their commands, and the contents of their database.
import { join } from 'node:path';
import { createLogger, type Secret, systemClock } from '@tunnel/runtime';
import { claimPortBlock, spawnProgram } from '@tunnel/testkit';
import { compareVersions } from '../../../../apps/platform/src/db/schema-history.rules.ts';
import { EmbeddedPostgres } from '../../../../apps/server/src/embedded-postgres/embedded-postgres.ts';
import { ask } from '../../../system/embedded-database.fixture.ts';
import type { Harness } from '../../../system/harness.fixture.ts';
import { MANY_LOGINS } from '../../../system/platform-test.fixture.ts';
import { Stack, withoutOurEnvironment } from '../../../system/stack.fixture.ts';
import type { Build } from './world.ts';

/** Starts a PostgreSQL that belongs to no server. */
export const startDatabase = async (harness: Harness): Promise<Secret> => {
  const logger = createLogger({ format: 'human', level: 'silent' });
  const dataDir = join(await harness.folder(), 'database');
  const postgres = new EmbeddedPostgres({ dataDir, logger, clock: systemClock, settings: { fsync: 'off' } });
  const { url } = await postgres.start();
  harness.use({ close: () => postgres.stop() });
  return url;
};

/** A platform of a build, not started yet. `like` is a platform with which it shares the master key. */
export const platformOf = async (harness: Harness, build: Build, database: Secret, like?: Stack): Promise<Stack> => {
  const key = like === undefined ? {} : { platform: `secret_key_file = "${join(like.dataDir, 'master-key')}"` };
  const options = { command: 'platform' as const, databaseUrl: database.reveal(), bin: build.server, ...key };
  const ports = harness.use(await claimPortBlock());
  return harness.use(new Stack(await harness.folder(), ports, { ...options, tables: MANY_LOGINS }));
};

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs a command of the build with the configuration of a server, until the command exits. */
export const command = async ({ server }: Build, { flags }: Stack, ...args: readonly string[]): Promise<Ran> => {
  const program = await spawnProgram({
    command: process.execPath,
    args: [server, ...args, ...flags],
    env: withoutOurEnvironment(),
    cwd: join(flags[1] ?? '', '..'),
  });
  const { code } = await program.waitForExit({ timeoutMs: 120_000 });
  await program.close();
  return { code, out: program.stdout.join('\n'), err: program.stderr.join('\n') };
};

export type Dump = Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>>;

/** Returns all rows of all tables, sorted by their text. */
export const dump = async (url: Secret): Promise<Dump> => {
  const tables = `select json_agg(tablename order by tablename)::text from pg_tables where schemaname = 'public'`;
  const found: Record<string, Readonly<Record<string, unknown>>[]> = {};
  for (const table of JSON.parse(String(await ask(url, tables))) as string[]) {
    const rows = await ask(url, `select coalesce(json_agg(t order by t::text), '[]')::text from ${table} t`);
    found[table] = JSON.parse(String(rows)) as Readonly<Record<string, unknown>>[];
  }
  return found;
};

/** The first version that reads the notes about migrations. Older versions refuse every database of a newer version. */
const FIRST_WITH_NOTES = '0.2.0';

/** True if the build can start on the database, by the notes of all its migrations. */
export const mayStart = async ({ version }: Build, url: Secret): Promise<boolean> => {
  const isAtLeast = (oldest: unknown): boolean => (compareVersions(version, String(oldest)) ?? -1) >= 0;
  const { schema_notes: notes = [] } = await dump(url);
  return isAtLeast(FIRST_WITH_NOTES) && notes.every(({ oldest_version: oldest }) => isAtLeast(oldest));
};
