import { createLogger, systemClock } from '@tunnel/runtime';
import { temporaryDirectory } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { EmbeddedPostgres } from './embedded-postgres.ts';

it('an embedded PostgreSQL that was never started stops at once', async () => {
  const folder = await temporaryDirectory();
  const logger = createLogger({ format: 'human', level: 'silent' });
  const postgres = new EmbeddedPostgres({ dataDir: folder.path, logger, clock: systemClock });
  await postgres.stop();
  expect(postgres.pid).toBeUndefined();
  await folder.close();
});
