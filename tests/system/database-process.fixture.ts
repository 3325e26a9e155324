// A separate program for tests that kill it: keeps an embedded database until it is stopped. usage: node database-process.js DATA_DIR
// PACKAGE_DIR
import { createLogger, systemClock } from '@tunnel/runtime';
import { EmbeddedPostgres } from '../../apps/server/src/embedded-postgres/embedded-postgres.ts';

const [dataDir = '', packageDir = ''] = process.argv.slice(2);
const logger = createLogger({ format: 'human', level: 'info', stream: process.stderr });
const postgres = new EmbeddedPostgres({ dataDir, packageDir, logger, clock: systemClock });
process.once('SIGTERM', () => void postgres.stop());

try {
  const { url } = await postgres.start();
  process.stdout.write(`ready ${postgres.pid} ${url.reveal()}\n`);
} catch (error) {
  process.stdout.write(`refused ${(error as Error).message}\n`);
}
