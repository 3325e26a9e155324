// Every reason shown for udp and p2p tunnels has a row in docs/udp.md or docs/p2p.md with its meaning and advice.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { dropReason, edgeFlows, relayReason } from '@tunnel/contract';
import { expect, it } from 'vitest';
import { pathText } from '../../apps/cli/src/output/peers.ts';
import { ROOT } from './checkout.fixture.ts';

/** Returns the rows of the table below a heading by the code in the first column. */
const rowsBelow = (page: string, heading: string): Map<string, string[]> => {
  const text = readFileSync(join(ROOT, page), 'utf8');
  const section = text.slice(text.indexOf(`\n## ${heading}\n`) + 1).split(/\n## /)[0] ?? '';
  const rows = [...section.matchAll(/^\| `([^`]+)` \| (.+) \| (.+) \|$/gm)];
  return new Map(rows.map(([, code = '', meaning = '', advice = '']) => [code, [meaning, advice]]));
};

it('docs/p2p.md begins each reason with the words that the client prints', () => {
  const rows = rowsBelow('docs/p2p.md', 'Relay or direct: every reason');
  for (const reason of relayReason.exclude(['']).options) {
    const [meaning = ''] = rows.get(reason) ?? [];
    const printed = /^relay \((.+)\)$/.exec(pathText({ path: 'relay', reason, rttMs: null }))?.[1] ?? '?';
    expect(meaning).toMatch(new RegExp(`^${printed}`));
  }
});

it.each([
  ['docs/udp.md', 'What is dropped, and why', dropReason.options],
  ['docs/udp.md', 'The UDP path', edgeFlows.shape.reason.options],
  ['docs/p2p.md', 'Relay or direct: every reason', relayReason.options],
])('%s, %s: lists exactly the existing reasons with their meaning and advice', (page, heading, reasons) => {
  const rows = rowsBelow(page, heading);
  expect([...rows.keys()].toSorted()).toEqual(reasons.filter((reason) => reason !== '').toSorted());
  for (const cells of rows.values()) for (const cell of cells) expect(cell.length).toBeGreaterThan(5);
});
