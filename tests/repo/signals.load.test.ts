// Signals through npm: each drains the server, exits with 0 and leaves no process behind. The long tests cover more signals.
import { spawnSync } from 'node:child_process';
import { type Program, spawnProgram } from '@tunnel/testkit';
import { cleanEnv, ROOT } from './checkout.fixture.ts';
import { startWithNpm } from './server-program.fixture.ts';
import { it } from './signal-trial.fixture.ts';

const hasScript = spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout?.includes('util-linux') ?? false;

it.for([
  ['SIGTERM to npm alone', (program: Program) => program.signal('SIGTERM')],
  // A terminal sends this signal for Ctrl-C. If a terminal can be created, the next test covers the signal.
  ...(hasScript ? [] : [['SIGINT to the group', (program: Program) => program.signalGroup('SIGINT')] as const]),
] as const)('%s drains the server, exits with 0 and leaves no process behind', async ([, ask], { trial }) => {
  const program = await startWithNpm(trial.at);
  const server = await trial.ready(program);
  const visitor = await trial.visit();
  ask(program);
  await trial.expectDrained(program, server, visitor);
});

// The test is skipped without util-linux's `script`, the only way to create a terminal here.
it.runIf(hasScript)(
  'Ctrl-C in a terminal drains the server, exits with 0 and leaves no process behind',
  async ({ trial }) => {
    // Without exec, a plain sh (the fallback of $SHELL) would be killed by the Ctrl-C, whatever npm's exit code.
    const typed = `exec npm start -- ${trial.at.flags.join(' ')}`;
    const env = { ...cleanEnv(), TUNNEL_LOG: 'json' };
    const program = await spawnProgram({ command: 'script', args: ['-qec', typed, '/dev/null'], env, cwd: ROOT });
    const server = await trial.ready(program);
    const visitor = await trial.visit();
    program.write('\u0003');
    await trial.expectDrained(program, server, visitor);
  },
);
