// The processes of a container, as this machine sees them.
import { readdirSync, readFileSync } from 'node:fs';

const read = (file) => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
};

export const commandOf = (pid) => read(`/proc/${pid}/cmdline`).split('\0');

/** A process and all processes below. */
export function descendantsOf(root) {
  const parents = new Map(
    readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map((name) => [Number(name), Number(/^PPid:\s*(\d+)/m.exec(read(`/proc/${name}/status`))?.[1] ?? 0)]),
  );
  const isBelow = (pid) => pid === root || (parents.get(pid) > 1 && isBelow(parents.get(pid)));
  return [...parents.keys()].filter(isBelow);
}

/** The process below another whose command line contains all words. */
export const findProcess = (root, words) =>
  descendantsOf(root).find((pid) => words.every((word) => commandOf(pid).includes(word)));
