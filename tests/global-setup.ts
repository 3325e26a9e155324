// Runs before tests that start the executables: builds them from the current sources.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { withCallersCertificates } from './caller-certificates.fixture.ts';
import { makeDatabaseTemplate } from './system/database-template.fixture.ts';

export const setup = async (): Promise<void> => {
  const script = fileURLToPath(new URL('../scripts/ensure.mjs', import.meta.url));
  // A failed build has already printed its errors. The tests run anyway, because tests of the sources can reveal more.
  spawnSync(process.execPath, [script, 'build'], { stdio: 'inherit', env: withCallersCertificates(process.env) });
  await makeDatabaseTemplate();
};
