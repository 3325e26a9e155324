import { describe, expect, it } from 'vitest';
import { runInProcess } from './run-in-process.ts';

describe('a program that runs inside the test process', () => {
  it('shows its output lines, receives signals, and exits with the code of its main function', async () => {
    const program = runInProcess({
      describe: 'a server',
      main: ({ stdout, stderr, signals }) => {
        stdout.write('rea');
        stdout.write('dy\n');
        stderr.write('a warning\n');
        return new Promise((resolve) => signals.once('SIGTERM', () => resolve(7)));
      },
      endNow: ({ signals }) => void signals.emit('SIGTERM'),
    });
    expect((await program.waitForLine(/^ready$/))[0]).toBe('ready');
    expect([program.stdout, program.stderr, program.exit]).toEqual([['ready'], ['a warning'], null]);
    program.signal('SIGTERM');
    expect(await program.waitForExit()).toEqual({ code: 7, signal: null });
    expect(program.exit).toEqual({ code: 7, signal: null });
  });

  it('exits with 1 and the error on stderr when its main function throws', async () => {
    const program = runInProcess({
      describe: 'a client',
      main: () => Promise.reject(new Error('no room')),
      endNow: () => {},
    });
    expect((await program.waitForExit()).code).toBe(1);
    expect(program.stderr[0]).toBe('Error: no room');
    await expect(program.waitForLine(/ready/)).rejects.toThrow(/a client ended with 1 before/);
  });

  it('refuses SIGKILL and has no pid', async () => {
    const program = runInProcess({ describe: 'a server', main: async () => 0, endNow: () => {} });
    expect(() => program.signal('SIGKILL')).toThrow(/needs a real process/);
    expect(() => program.pid).toThrow('a pid needs a real process: run a server as a program');
    await program.close();
  });

  it('is killed and frozen by its own functions, and prints nothing after a kill', async () => {
    const frozen: boolean[] = [];
    const program = runInProcess({
      describe: 'a client',
      main: ({ signals, stdout }) =>
        new Promise((resolve) => {
          signals.once('SIGTERM', () => {
            stdout.write('last words\n');
            resolve(0);
          });
        }),
      endNow: () => {},
      kill: async ({ signals }, ended) => {
        signals.emit('SIGTERM');
        await ended;
      },
      freeze: (isFrozen) => void frozen.push(isFrozen),
    });
    program.signal('SIGSTOP');
    program.signal('SIGCONT');
    program.signal('SIGKILL');
    expect(await program.waitForExit()).toEqual({ code: null, signal: 'SIGKILL' });
    expect([frozen, program.stdout]).toEqual([[true, false], []]);
  });

  it('has exited once it is closed', async () => {
    const closed = runInProcess({ describe: 'a', main: () => new Promise(() => {}), endNow: ({ exit }) => exit(3) });
    await closed.close();
    expect(closed.exit?.code).toBe(3);
  });
});
