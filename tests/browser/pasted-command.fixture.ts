// A command as a page shows it, pasted into a shell: in a checkout, with a home of its own.
import { type Program, spawnProgram } from '@tunnel/testkit';
import type { Locator } from 'playwright-core';
import { ROOT } from '../repo/checkout.fixture.ts';
import type { Harness } from '../system/harness.fixture.ts';
import { withoutOurEnvironment } from '../system/stack.fixture.ts';

/** What the copy button beside it copies. */
export const commandIn = async (place: Locator): Promise<string> => {
  const text = (
    await place
      .locator('code', { hasText: /\$\s+\S/ })
      .first()
      .innerText()
  ).trim();
  return text.replace(/^\$\s+/, '');
};

/** `home` undefined: a new one. */
export const paste = async (harness: Harness, command: string, home?: string): Promise<Program> => {
  const program = await spawnProgram({
    command: '/bin/sh',
    args: ['-c', command],
    env: { ...withoutOurEnvironment(), HOME: home ?? (await harness.folder()), npm_config_update_notifier: 'false' },
    cwd: ROOT,
  });
  return harness.use(program);
};
