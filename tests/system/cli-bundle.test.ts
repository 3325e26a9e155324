// Tests of the chunks that a client command loads at once. `tunnel mcp` must list its tools soon after the start, and other commands must
// not load the MCP protocol.
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

/** Returns the text of the chunk that contains the words, together with all statically imported chunks. */
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
const TABLE = 'var TABLE=';
const ACCOUNT_API = 'var PASSWORD_EXAMPLE=';
const LOGS = 'node_modules/pino/pino.js';
const PUBLISH = 'var describingCommand=';

describe('the client bundle', () => {
  it('contains each marker text in exactly one chunk, so that the other tests can find chunks', () => {
    for (const words of [CLIENT, INSPECTOR, TABLE, PUBLISH, 'var serveMcp=']) {
      expect(
        [...chunks.values()].filter((text) => text.includes(words)),
        words,
      ).toHaveLength(1);
    }
    expect(loadedWith('var serveMcp=')).toContain(PROTOCOL);
    expect(loadedWith(PUBLISH)).toContain(CLIENT);
  });

  it('shows the help of `tunnel` without loading a command', () => {
    for (const words of [CLIENT, PUBLISH, PROTOCOL]) expect(loadedWith(TABLE)).not.toContain(words);
  });

  it('loads the MCP protocol only for `tunnel mcp`', () => {
    expect(loadedWith(PUBLISH)).not.toContain(PROTOCOL);
  });

  it('lists MCP tools without loading the tunnel client', () => {
    expect(loadedWith('var serveMcp=')).not.toContain(CLIENT);
    expect(loadedWith('var mcpCommand=')).not.toContain(CLIENT);
  });

  it('loads the inspector only on demand', () => {
    expect(loadedWith(PUBLISH)).not.toContain(INSPECTOR);
  });

  it('opens tunnels without loading the account API and the code for logs', () => {
    const texts = readdirSync(DIST)
      .filter((name) => /^publish.*\.js$/.test(name))
      .map((name) => [name, readFileSync(join(DIST, name), 'utf8')] as const);
    const entry = readFileSync(join(DIST, 'publish.js'), 'utf8');
    const imported = new Set([...entry.matchAll(/(?:from|import)"\.\/(publish-\w+\.js)"/g)].map(([, name]) => name));
    const atOnce = texts.filter(([name]) => name === 'publish.js' || imported.has(name));
    for (const words of [INSPECTOR, ACCOUNT_API, LOGS]) {
      expect(
        texts.some(([, text]) => text.includes(words)),
        words,
      ).toBe(true);
      expect(
        atOnce.some(([, text]) => text.includes(words)),
        words,
      ).toBe(false);
    }
  });

  it('prints only its version for --version and -V', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    for (const flag of ['--version', '-V']) {
      expect(await node([join(DIST, 'tunnel.js'), flag])).toMatchObject({
        code: 0,
        stdout: `${version}\n`,
        stderr: '',
      });
    }
  });

  it('contains only ASCII, so that V8 stores a single byte per character', () => {
    for (const [name, text] of chunks) expect(/\P{ASCII}/u.exec(text)?.index, name).toBeUndefined();
  });
});
