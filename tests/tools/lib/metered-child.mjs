// Requests measurements from a child process that has meter.mjs loaded.
import { fileURLToPath } from 'node:url';
import { failAtExit } from '../../../bench/lib/children.mjs';

/** Node.js arguments that go before the program. */
export const METER_ARGS = ['--expose-gc', '--import', fileURLToPath(new URL('meter.mjs', import.meta.url))];

/**
 * Returns a function: `ask('memory')`, `ask('cpu')` or `ask('handles')` resolves to the measurement, and rejects if the child ends first.
 */
export function meterOf(child) {
  let asked = 0;
  const answers = new Map();
  child.process.on('message', ({ id, value }) => {
    answers.get(id)?.(value);
    answers.delete(id);
  });
  return (what) => {
    asked += 1;
    const id = asked;
    const answer = new Promise((resolve) => {
      answers.set(id, resolve);
    });
    child.process.send({ id, what });
    return Promise.race([answer, failAtExit(child)]);
  };
}
