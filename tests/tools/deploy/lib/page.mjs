// The steps of docs/deploy.md: the code blocks below each heading, as an operator reads them.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../../../scripts/lib/paths.mjs';

/** @returns {{ heading: string, language: string, lines: string[] }[]} the code blocks of the numbered steps, in order */
export function readBlocks(text = readFileSync(join(ROOT, 'docs/deploy.md'), 'utf8')) {
  const blocks = [];
  let heading = '';
  let open;
  for (const line of text.split('\n')) {
    const fence = /^```(\w*)$/.exec(line);
    if (fence !== null && open === undefined) open = { heading, language: fence[1], lines: [] };
    else if (fence !== null) {
      if (/^\d+\. /.test(open.heading)) blocks.push(open);
      open = undefined;
    } else if (open !== undefined) open.lines.push(line);
    else if (line.startsWith('## ')) heading = line.slice(3);
  }
  return blocks;
}

/** The commands of a shell block: lines, with continued lines joined. Comments stay, because a shell ignores them. */
export const commandsOf = ({ lines }) =>
  lines
    .join('\n')
    .replaceAll(/\\\n\s*/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'));

/** The records of the DNS block: name, type and value, without the final dots. */
export const recordsOf = ({ lines }) =>
  lines
    .map((line) =>
      line
        .trim()
        .split(/\s+/)
        .map((word) => word.replace(/\.$/, '')),
    )
    .filter((words) => words.length === 3)
    .map(([name, type, value]) => ({ name, type, value }));
