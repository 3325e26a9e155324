// Order of messages from a piped program.
import { systemClock } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import { ChildProcess } from './child-process.ts';

const COUNT = 300;
/** Script of a program. The program writes an answer while earlier notifications are still being delivered, one per turn. */
const BURST = `
process.stdin.once('data', () => {
  const note = (step) => JSON.stringify({ jsonrpc: '2.0', method: 'note', params: { step } }) + '\\n';
  process.stdout.write(Array.from({ length: ${COUNT} }, (_, step) => note(step)).join(''), () =>
    process.stdout.write('{"jsonrpc":"2.0","id":1,"result":{}}\\n'));
});
`;

let child: ChildProcess;
afterEach(() => child.close());

it('an answer is delivered after the notifications before it, even to listeners that handle them one turn later', async () => {
  const env = { PATH: process.env['PATH'] };
  const command = { command: process.execPath, args: ['-e', BURST], env, cwd: process.cwd() };
  child = new ChildProcess(command, { clock: systemClock, onStderr: () => {} });
  const told: unknown[] = [];
  // The SDK also delivers notifications a turn later.
  child.onmessage = (message) => {
    if ('id' in message) told.push('answer');
    else void Promise.resolve().then(() => told.push('note'));
  };
  await child.start();
  await child.send({ jsonrpc: '2.0', method: 'begin' });
  await eventually(() => expect(told).toHaveLength(COUNT + 1), { timeoutMs: 20_000 });
  expect(told.indexOf('answer')).toBe(COUNT);
});
