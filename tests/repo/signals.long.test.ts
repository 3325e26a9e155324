// The end of a stack after signals to a process group, repeated signals, and a second signal.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { startServer, startWithNpm } from './server-program.fixture.ts';
import { it } from './signal-trial.fixture.ts';

it('SIGTERM to the process group drains the server, exits with 0 and leaves no process behind', async ({ trial }) => {
  const program = await startWithNpm(trial.at);
  const server = await trial.ready(program);
  const visitor = await trial.visit();
  program.signalGroup('SIGTERM');
  await trial.expectDrained(program, server, visitor);
});

// npm forwards a terminal's signal late on a busy machine, when the server has almost stopped.
it('SIGINT that is repeated until the process is gone still ends the server with exit code 0 or 130', async ({
  trial,
}) => {
  const program = await startServer(trial.at);
  await trial.ready(program);
  await eventually(
    () => {
      if (program.exit === null) program.signal('SIGINT');
      expect(program.exit).not.toBeNull();
    },
    { timeoutMs: 30_000, intervalMs: 1 },
  );
  // On a busy machine the stop can take longer than the second in which repeated signals count once, so 130 is allowed. The process must
  // never die of the signal.
  expect(program.exit?.signal).toBeNull();
  expect([0, 130]).toContain(program.exit?.code);
});

it('a second SIGTERM more than a second after the first ends the server at once with 143', async ({ trial }) => {
  const program = await startServer(trial.at);
  await trial.ready(program);
  const visitor = await trial.visit();
  visitor.on('error', () => {});
  program.signal('SIGTERM');
  await program.waitForLine(/stopping/);
  await eventually(
    () => {
      program.signal('SIGTERM');
      expect(program.exit).toEqual({ code: 143, signal: null });
    },
    { timeoutMs: 30_000, intervalMs: 200 },
  );
  expect(existsSync(join(trial.at.dataDir, 'run.json'))).toBe(false);
});
