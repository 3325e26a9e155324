// Commands of tunnel-server beside one that runs.
import { join } from 'node:path';
import { type Program, spawnProgram } from '@tunnel/testkit';
import { cleanEnv, ROOT, SERVER_BIN } from '../repo/checkout.fixture.ts';
import { type Stack, withoutOurEnvironment } from './stack.fixture.ts';

/** A command of tunnel-server beside the one that runs; its output once it has ended well. */
export const serverCommand = async (stack: Pick<Stack, 'flags'>, ...args: string[]): Promise<readonly string[]> => {
  const program: Program = await spawnProgram({
    command: process.execPath,
    args: [SERVER_BIN, ...args, ...stack.flags],
    env: { ...withoutOurEnvironment(), ...cleanEnv() },
    cwd: join(ROOT, 'tests'),
  });
  const { code } = await program.waitForExit({ timeoutMs: 60_000 });
  if (code !== 0) throw new Error(`tunnel-server ${args.join(' ')} ended with ${code}:\n${program.stderr.join('\n')}`);
  await program.close();
  return program.stdout;
};
