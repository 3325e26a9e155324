// A command's way to the database: the configured one, the embedded one of a server that runs, or the embedded one started for
// as long as the command takes.

import { Fault } from '@tunnel/errors';
import { Database, isDatabaseAway, migratePatiently, pendingMigrations } from '@tunnel/platform';
import { createLogger, type Secret, type ServerConfig, systemClock } from '@tunnel/runtime';
import { openDataDir } from './data-dir.ts';
import { embeddedUrl } from './embedded-postgres/connection-file.ts';
import { EmbeddedPostgres } from './embedded-postgres/embedded-postgres.ts';

const logger = createLogger({ level: 'warn', format: 'human', stream: process.stderr });

/** `prepared`: the tables are brought up to date first. `patient`: no statement is cut. Throws a fault when there is no database. */
export const withDatabase = async <T>(
  config: ServerConfig,
  { prepared, patient = false }: { readonly prepared: boolean; readonly patient?: boolean },
  act: (database: Database) => Promise<T>,
): Promise<T> => {
  const { url, stop } = await findDatabase(config);
  const database = new Database({ url, logger, connections: 2, patient });
  try {
    if (prepared && (await pendingMigrations(database.db)).length > 0) await migratePatiently({ url, logger });
    return await act(database);
  } catch (error) {
    throw isDatabaseAway(error) ? new Fault('DATABASE_AWAY', {}, { cause: error }) : error;
  } finally {
    await database.close();
    await stop();
  }
};

const findDatabase = async (config: ServerConfig): Promise<{ url: Secret; stop: () => Promise<void> }> => {
  const stop = async (): Promise<void> => {};
  if (config.database.url.reveal() !== '') return { url: config.database.url, stop };
  const dataDir = openDataDir(config.data_dir);
  const running = embeddedUrl(dataDir);
  if (running !== null) return { url: running, stop };
  const postgres = new EmbeddedPostgres({ dataDir, logger, clock: systemClock });
  const { url } = await postgres.start();
  return { url, stop: () => postgres.stop() };
};
