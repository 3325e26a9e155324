// A command as a page shows it, pasted into a shell: in a checkout, with a home of its own.
import { type Program, spawnProgram } from '@tunnel/testkit';
import type { Locator } from 'playwright-core';
import { ROOT } from '../house/checkout.ts';
import type { Scene } from '../system/running-things.ts';
import { withoutOurEnvironment } from '../system/stack.ts';

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
export const paste = async (scene: Scene, command: string, home?: string): Promise<Program> => {
  const program = await spawnProgram({
    command: '/bin/sh',
    args: ['-c', command],
    env: { ...withoutOurEnvironment(), HOME: home ?? (await scene.folder()), npm_config_update_notifier: 'false' },
    cwd: ROOT,
  });
  return scene.keep(program);
};
