// Runs a command from a page in a shell on a computer that has the client installed, with a separate home directory.
import { delimiter, join } from 'node:path';
import { type Program, spawnProgram } from '@tunnel/testkit';
import type { Locator } from 'playwright-core';
import { ROOT } from '../repo/checkout.fixture.ts';
import type { Harness } from '../system/harness.fixture.ts';
import { withoutOurEnvironment } from '../system/stack.fixture.ts';

/** Returns the command that the copy button beside it copies. */
export const commandIn = async (place: Locator): Promise<string> => {
  const text = (
    await place
      .locator('code', { hasText: /\$\s+\S/ })
      .first()
      .innerText()
  ).trim();
  return text.replace(/^\$\s+/, '');
};

/** Folder that contains the command `tunnel` in a checkout. */
const BIN = join(ROOT, 'node_modules/.bin');

/** Runs a command in a shell. Without `home`, a new home directory is used. */
export const paste = async (harness: Harness, command: string, home?: string): Promise<Program> => {
  const env = withoutOurEnvironment();
  const program = await spawnProgram({
    command: '/bin/sh',
    args: ['-c', command],
    env: { ...env, PATH: `${BIN}${delimiter}${env['PATH']}`, HOME: home ?? (await harness.folder()) },
  });
  return harness.use(program);
};
