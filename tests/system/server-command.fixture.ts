// Commands of tunnel-server beside one that runs.
import { join } from 'node:path';
import { OutputLines, type Program, spawnProgram } from '@tunnel/testkit';
import { cleanEnv, ROOT, SERVER_BIN } from '../repo/checkout.fixture.ts';
import { type Stack, withoutOurEnvironment } from './stack.fixture.ts';

type Beside = Pick<Stack, 'flags' | 'isInProcess'>;

/** The output of a command beside a running server, once it has ended well. It runs where the server runs: in a process, or in this one. */
export const serverCommand = (stack: Beside, ...args: string[]): Promise<readonly string[]> =>
  stack.isInProcess ? inTurn(() => commandHere(stack, args)) : spawnedServerCommand(stack, ...args);

/** The same by the executable, whatever the server is. */
export const spawnedServerCommand = async (stack: Beside, ...args: string[]): Promise<readonly string[]> => {
  const program: Program = await spawnProgram({
    command: process.execPath,
    args: [SERVER_BIN, ...args, ...stack.flags],
    env: { ...withoutOurEnvironment(), ...cleanEnv() },
    cwd: join(ROOT, 'tests'),
  });
  const { code } = await program.waitForExit({ timeoutMs: 60_000 });
  await program.close();
  return outputOf(args, code, program);
};

/** Commands write to the streams of the process, so only one of them runs at a time. */
let latest: Promise<unknown> = Promise.resolve();
const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
  const turn = latest.then(work, work);
  latest = turn;
  return turn;
};

const commandHere = async (stack: Beside, args: readonly string[]): Promise<readonly string[]> => {
  const [{ runCommand }, { admin }, { edgeCredential }, { oauthClient }] = await Promise.all([
    import('../../apps/server/src/program.ts'),
    import('../../apps/server/src/commands/admin.ts'),
    import('../../apps/server/src/commands/database-commands.ts'),
    import('../../apps/server/src/commands/oauth-client.ts'),
  ]);
  const lines = new OutputLines();
  const restore = (['stdout', 'stderr'] as const).map((name) => {
    const { write } = process[name];
    const caught = lines.writable(name);
    process[name].write = (text: string | Uint8Array): boolean => caught.write(text);
    return () => void (process[name].write = write);
  });
  try {
    const code = await runCommand([admin, edgeCredential, oauthClient], [...args, ...stack.flags]);
    return outputOf(args, code, lines);
  } finally {
    for (const undo of restore) undo();
  }
};

type Output = Pick<Program, 'stdout' | 'stderr'>;

const outputOf = (args: readonly string[], code: number | null, { stdout, stderr }: Output): readonly string[] => {
  if (code !== 0) throw new Error(`tunnel-server ${args.join(' ')} ended with ${code}:\n${stderr.join('\n')}`);
  return stdout;
};
