// docs/protocol.md is prose; this test compares the verifiable parts of the page with the code.
import { readdirSync, readFileSync } from 'node:fs';
import { CATALOGUE } from '@tunnel/errors';
import { SEALED_KIND } from '@tunnel/mux';
import { describe, expect, it } from 'vitest';
import { decodeControl } from './control-codec.ts';
import { CONTROL_SCHEMAS, CONTROL_TYPES } from './control-messages.ts';
import { FRAME, FRAME_KINDS, type FrameType, STREAM_CODES } from './frames.ts';
import { CAPABILITIES, PROTOCOL_VERSION } from './handshake.ts';

/** Names of constants in the packages with documented limits. */
const LIMIT_NAMES = ['packages/protocol', 'packages/mux', 'packages/client', 'apps/edge'].flatMap((folder) => {
  const src = new URL(`../../../${folder}/src/`, import.meta.url);
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' });
  const sources = files.filter((file) => file.endsWith('.ts') && !/\.(?:test|fixture|conformance)\.ts$/.test(file));
  return sources.flatMap((file) =>
    [
      ...readFileSync(new URL(file, src), 'utf8').matchAll(/^(?: {2}|(?:export )?const )([A-Z][A-Z0-9_]+)(?::| =) ?/gm),
    ].map((match) => match[1] ?? ''),
  );
});
const page = readFileSync(new URL('../../../docs/protocol.md', import.meta.url), 'utf8');

const vectors = <T>(file: string): T[] =>
  JSON.parse(readFileSync(new URL(`../vectors/${file}`, import.meta.url), 'utf8')) as T[];

const blocksOf = (language: string): string[] =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map((match) => match[1] ?? '');

describe('docs/protocol.md', () => {
  const examples = blocksOf('json').map((block) => block.trim());

  it.each(examples.map((example) => [example.slice(0, 60), example]))(
    'has only examples that are vectors and decode: %s',
    (_, text) => {
      expect(decodeControl(text)).toMatchObject({ ok: true });
      const known = ['control.json', 'control-capabilities.json'].flatMap((file) => vectors<{ text: string }>(file));
      expect(known.map((vector) => vector.text)).toContain(text);
    },
  );

  it('has an example of every control message', () => {
    const shown = examples.map((example) => (JSON.parse(example) as { type: string }).type);
    expect([...new Set(shown)].sort()).toEqual([...CONTROL_TYPES].sort());
  });

  it.each(CONTROL_TYPES)('describes %s with every field', (type) => {
    expect(page).toContain(`**\`${type}\`**`);
    const fields = Object.keys(CONTROL_SCHEMAS[type].unwrap().shape);
    const missing = fields.filter(
      (field) => field !== 'type' && !page.includes(`\`${field}`) && !page.includes(`.${field}\``),
    );
    expect(missing).toEqual([]);
  });

  it.each(Object.entries(FRAME) as [string, FrameType][])(
    'lists %s in the table of frames with its size limits',
    (name, type) => {
      const row = page.split('\n').find((line) => line.startsWith(`| ${type} | \`${name}\` |`));
      const { min, max } = FRAME_KINDS[type];
      expect(row?.split('|').at(-2)?.trim()).toBe(min === max ? `${min}` : `${min} to ${max}`);
    },
  );

  it.each(Object.entries(STREAM_CODES))('lists the reason %s with its number', (name, code) => {
    expect(page).toContain(`\n| ${code} | \`${name}\` |`);
  });

  it('shows only frames that are vectors', () => {
    const files = ['frames.json', 'frames-capabilities.json'];
    const known = new Set(files.flatMap((file) => vectors<{ hex: string }>(file)).map((vector) => vector.hex));
    const shown = blocksOf('hex').join('').trim().split('\n');
    expect(shown.length).toBeGreaterThan(3);
    expect(shown.filter((line) => !known.has(line.split(' ')[0] ?? ''))).toEqual([]);
  });

  it('names only limits, codes, frames and packets that exist', () => {
    const names = [...page.matchAll(/`([A-Z]+(?:_[A-Z]+)+)`/g)].map((match) => match[1] ?? '');
    const known = new Set([
      ...LIMIT_NAMES,
      ...Object.keys(CATALOGUE),
      ...Object.keys(FRAME),
      ...Object.keys(SEALED_KIND),
    ]);
    expect(names.filter((name) => !known.has(name))).toEqual([]);
  });

  it('states the current protocol version', () => {
    expect(page).toContain(`This is version **${PROTOCOL_VERSION}**`);
  });

  it.each(CAPABILITIES)('lists the capability %s', (name) => {
    expect(page).toContain(`\n| \`${name}\` |`);
  });

  it('links only to its own headings', () => {
    const headings = [...page.matchAll(/^#+ (.+)$/gm)].map((match) =>
      (match[1] ?? '').toLowerCase().replaceAll(' ', '-'),
    );
    const links = [...page.matchAll(/\]\(#([^)]+)\)/g)].map((match) => match[1] ?? '');
    expect(links.filter((link) => !headings.includes(link))).toEqual([]);
  });
});
