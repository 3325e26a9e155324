// A part of world.ts in a process of a network namespace. Its functions can be called like asynchronous functions of this process.
import { fileURLToPath } from 'node:url';
import { failAtExit, startChild } from '../../../../bench/lib/children.mjs';
import { ROOT } from '../../../../scripts/lib/paths.mjs';
import { BIN } from '../../acme/lib/install.mjs';

const PROGRAM = fileURLToPath(new URL('world.mjs', import.meta.url));

export async function startRemote(namespace, part, options) {
  const child = startChild({
    name: part,
    command: 'ip',
    args: ['netns', 'exec', namespace, process.execPath, PROGRAM, part, JSON.stringify(options)],
    env: { ...process.env, PEBBLE_BIN: BIN },
    cwd: ROOT,
    ipc: true,
  });
  const waiting = new Map();
  const answered = (id) => new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  child.process.on('message', ({ id, value, error }) => {
    const call = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) call?.resolve(value);
    else call?.reject(new Error(error));
  });
  const lost = failAtExit(child);
  lost.catch(() => {});
  await Promise.race([answered(0), lost]);
  let lastId = 0;
  const call = (name, ...args) => {
    lastId += 1;
    const answer = answered(lastId);
    child.process.send({ id: lastId, name, args });
    return Promise.race([answer, lost]);
  };
  return { call, child };
}
