// Tests of the output of a server at a terminal after its start, with a configuration that causes no warning.
import { expect } from 'vitest';
import { it } from './in-process.fixture.ts';

const DEMO = { command: 'stack', tables: '[load_balancing]\nenabled = true', fixedPorts: true } as const;

it('the first screen has at most 12 lines of 80 columns with the dashboard and the next command, and no log line', async ({
  harness,
}) => {
  const { program } = await harness.stack({ ...DEMO, terminal: 'plain' });
  await program.waitForLine(/^Press Ctrl-C to stop/);
  const { stdout, stderr } = program;
  expect(stdout.length).toBeLessThanOrEqual(12);
  for (const line of stdout) expect(line.length, line).toBeLessThanOrEqual(80);
  expect(stdout.join('\n')).toMatch(/dashboard +http:\/\/localhost:\d+\/app\/\n/);
  expect(stdout.join('\n')).toMatch(/\n {2}tunnel http 3000 --token-file data\/admin-token/);
  expect(stdout.join('\n')).not.toContain('payments');
  expect(stderr).toEqual([]);
});

it('--verbose prints every address and the log to a terminal, as a server without a terminal does', async ({
  harness,
}) => {
  const verbose = await harness.stack({ ...DEMO, terminal: 'verbose' });
  const collected = await harness.stack(DEMO);
  for (const { program } of [verbose, collected]) {
    expect(program.stdout.join('\n')).toMatch(/payments +http:\/\/localhost:\d+ \(test mode/);
    expect(program.stderr.join('\n')).toContain('connection limits');
  }
  expect(collected.program.stderr[0]).toMatch(/^\{"level":"info",/);
});
