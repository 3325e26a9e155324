// Every reason that people can meet at udp and p2p tunnels has its row in docs/udp.md or docs/p2p.md: what happened, and what to do.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { dropReason, edgeFlows, relayReason } from '@tunnel/contract';
import { expect, it } from 'vitest';
import { ROOT } from './checkout.fixture.ts';

/** The table below a heading: its rows by the code in the first column. */
const rowsBelow = (page: string, heading: string): Map<string, string[]> => {
  const text = readFileSync(join(ROOT, page), 'utf8');
  const section = text.slice(text.indexOf(`\n## ${heading}\n`) + 1).split(/\n## /)[0] ?? '';
  const rows = [...section.matchAll(/^\| `([^`]+)` \| (.+) \| (.+) \|$/gm)];
  return new Map(rows.map(([, code = '', meaning = '', advice = '']) => [code, [meaning, advice]]));
};

it.each([
  ['docs/udp.md', 'What is dropped, and why', dropReason.options],
  ['docs/udp.md', 'The path', edgeFlows.shape.reason.options],
  ['docs/p2p.md', 'Relay or direct: every reason', relayReason.options],
])('%s, %s: exactly the reasons that there are, each with its meaning and what to do', (page, heading, reasons) => {
  const rows = rowsBelow(page, heading);
  expect([...rows.keys()].toSorted()).toEqual(reasons.filter((reason) => reason !== '').toSorted());
  for (const cells of rows.values()) for (const cell of cells) expect(cell.length).toBeGreaterThan(5);
});
