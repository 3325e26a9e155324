// Commands of tunnel-server beside one that runs.
import { join } from 'node:path';
import { OutputLines, type Program, spawnProgram } from '@tunnel/testkit';
import { cleanEnv, ROOT, SERVER_BIN } from '../repo/checkout.fixture.ts';
import { type Stack, withoutOurEnvironment } from './stack.fixture.ts';

type Beside = Pick<Stack, 'flags' | 'isInProcess'>;

/** The output of a command beside a running server, once it has ended well. It runs where the server runs: in a process, or in this one. */
export const serverCommand = (stack: Beside, ...args: string[]): Promise<readonly string[]> =>
  stack.isInProcess ? commandHere(stack, args) : spawnedServerCommand(stack, ...args);

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
  const { code, ...output } = await runServerCommand([...args, ...stack.flags]);
  return outputOf(args, code, output);
};

interface Ended extends Output {
  readonly code: number;
}

/** `tunnel-server` with these arguments inside the test's process: a command that ends by itself. */
export const runServerCommand = (args: readonly string[]): Promise<Ended> => inTurn(() => caught(args));

const caught = async (args: readonly string[]): Promise<Ended> => {
  const [
    { runCommand },
    { admin },
    { certificates },
    { downloads },
    { edgeCredential },
    { oauthClient },
    { signingKeys },
  ] = await Promise.all([
    import('../../apps/server/src/program.ts'),
    import('../../apps/server/src/commands/admin.ts'),
    import('../../apps/server/src/commands/certificates.ts'),
    import('../../apps/server/src/commands/downloads.ts'),
    import('../../apps/server/src/commands/database-commands.ts'),
    import('../../apps/server/src/commands/oauth-client.ts'),
    import('../../apps/server/src/commands/signing-keys.ts'),
  ]);
  const lines = new OutputLines();
  const restore = (['stdout', 'stderr'] as const).map((name) => {
    const { write } = process[name];
    const stream = lines.writable(name);
    process[name].write = (text: string | Uint8Array): boolean => stream.write(text);
    return () => void (process[name].write = write);
  });
  try {
    const commands = [admin, certificates, downloads, edgeCredential, oauthClient, signingKeys];
    const code = await runCommand(commands, args);
    return { code, stdout: lines.stdout, stderr: lines.stderr };
  } finally {
    for (const undo of restore) undo();
  }
};

type Output = Pick<Program, 'stdout' | 'stderr'>;

const outputOf = (args: readonly string[], code: number | null, { stdout, stderr }: Output): readonly string[] => {
  if (code !== 0) throw new Error(`tunnel-server ${args.join(' ')} ended with ${code}:\n${stderr.join('\n')}`);
  return stdout;
};
