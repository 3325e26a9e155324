// Runs commands of tunnel-server beside a running server.
import { join } from 'node:path';
import { OutputLines, type Program, spawnProgram } from '@tunnel/testkit';
import { cleanEnv, ROOT } from '../repo/checkout.fixture.ts';
import { type Stack, withoutOurEnvironment } from './stack.fixture.ts';

type Beside = Pick<Stack, 'flags' | 'isInProcess' | 'bin'>;

/**
 * Runs a command beside a running server, and returns its output after success. The command runs as a process if the server does, and
 * otherwise inside the test process.
 */
export const serverCommand = (stack: Beside, ...args: string[]): Promise<readonly string[]> =>
  stack.isInProcess ? commandHere(stack, args) : spawnedServerCommand(stack, ...args);

/** Runs a command as an executable beside a running server, and returns its output after success. */
export const spawnedServerCommand = async (stack: Beside, ...args: string[]): Promise<readonly string[]> => {
  const program: Program = await spawnProgram({
    command: process.execPath,
    args: [stack.bin, ...args, ...stack.flags],
    env: { ...withoutOurEnvironment(), ...cleanEnv() },
    cwd: join(ROOT, 'tests'),
  });
  const { code } = await program.waitForExit({ timeoutMs: 60_000 });
  await program.close();
  return outputOf(args, code, program);
};

/** Commands write to the streams of the test process, so only a single command runs at a time. */
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

/** Runs `tunnel-server` with the given arguments inside the test process, until the command exits. */
export const runServerCommand = (args: readonly string[]): Promise<Ended> => inTurn(() => caught(args));

const caught = async (args: readonly string[]): Promise<Ended> => {
  const [
    { runCommand },
    { admin },
    { backup },
    { certificates },
    { downloads },
    { edgeCredential },
    { oauthClient },
    { signingKeys },
  ] = await Promise.all([
    import('../../apps/server/src/program.ts'),
    import('../../apps/server/src/commands/admin.ts'),
    import('../../apps/server/src/commands/backup-command.ts'),
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
    const commands = [admin, backup, certificates, downloads, edgeCredential, oauthClient, signingKeys];
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
