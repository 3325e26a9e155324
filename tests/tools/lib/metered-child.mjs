// Questions to a child process that has meter.mjs loaded, over its channel.
import { fileURLToPath } from 'node:url';
import { failAtExit } from '../../../bench/lib/children.mjs';

/** Arguments of node, in front of the program. */
export const METER_ARGS = ['--expose-gc', '--import', fileURLToPath(new URL('meter.mjs', import.meta.url))];

/** `ask('memory')`, `ask('cpu')` or `ask('handles')` gives the answer; it fails when the child ends first. */
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
