// Before tests that run them: the executables are built from the sources as they are now.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { makeDatabaseTemplate } from './system/database-template.fixture.ts';

export const setup = async (): Promise<void> => {
  const script = fileURLToPath(new URL('../scripts/ensure.mjs', import.meta.url));
  // A failed build has said so; tests that run from the sources can still tell more.
  spawnSync(process.execPath, [script, 'build'], { stdio: 'inherit' });
  await makeDatabaseTemplate();
};
