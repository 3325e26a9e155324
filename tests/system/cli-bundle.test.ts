// What a command of the client loads at once: a list of tools has to be there soon after the start of `tunnel mcp`, and nobody else pays for the protocol.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { node, ROOT } from '../repo/checkout.fixture.ts';

const DIST = join(ROOT, 'apps/cli/dist');
const STATIC = /(?<![\w.$])(?:import|export)(?:[^("';]*?from)?"\.\/(tunnel-\w+\.js)"/g;

const chunks = new Map(
  readdirSync(DIST)
    .filter((name) => /^tunnel.*\.js$/.test(name))
    .map((name) => [name, readFileSync(join(DIST, name), 'utf8')]),
);

/** The one with these words in it, and all that it imports at once. */
const loadedWith = (words: string): string => {
  const [start = ''] = [...chunks].find(([, text]) => text.includes(words)) ?? [];
  const seen = new Set<string>();
  const open = [start];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (seen.has(name)) continue;
    seen.add(name);
    open.push(...[...(chunks.get(name) ?? '').matchAll(STATIC)].map(([, imported = '']) => imported));
  }
  return [...seen].map((name) => chunks.get(name) ?? '').join('\n');
};

const PROTOCOL = 'Server does not support completions';
const CLIENT = 'this change needs the edge: close tunnel';
const INSPECTOR = 'back to the list';

describe('the bundle of the client', () => {
  it('has each of them once, so that this test can tell', () => {
    for (const words of [CLIENT, INSPECTOR, 'COMMAND_GROUPS=', 'var serveMcp=']) {
      expect(
        [...chunks.values()].filter((text) => text.includes(words)),
        words,
      ).toHaveLength(1);
    }
    expect(loadedWith('var serveMcp=')).toContain(PROTOCOL);
    expect(loadedWith('COMMAND_GROUPS=')).toContain(CLIENT);
  });

  it('loads the protocol of models for `tunnel mcp` alone', () => {
    expect(loadedWith('COMMAND_GROUPS=')).not.toContain(PROTOCOL);
  });

  it('lists tools without what opens tunnels', () => {
    expect(loadedWith('var serveMcp=')).not.toContain(CLIENT);
    expect(loadedWith('var mcpCommand=')).not.toContain(CLIENT);
  });

  it('runs tunnels without the inspector, until somebody opens it', () => {
    expect(loadedWith('COMMAND_GROUPS=')).not.toContain(INSPECTOR);
  });

  it('says its version without loading the rest', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    for (const flag of ['--version', '-V']) {
      expect(await node([join(DIST, 'tunnel.js'), flag])).toMatchObject({
        code: 0,
        stdout: `${version}\n`,
        stderr: '',
      });
    }
  });

  it('has no character for which V8 would keep two bytes of every one', () => {
    for (const [name, text] of chunks) expect(/\P{ASCII}/u.exec(text)?.index, name).toBeUndefined();
  });
});
