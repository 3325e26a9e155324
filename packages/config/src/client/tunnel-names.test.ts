import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isMap, isScalar, parseAllDocuments } from 'yaml';
import { tunnelNames } from './tunnel-names.ts';

let folder: TemporaryDirectory;
beforeEach(async () => {
  folder = await temporaryDirectory();
});
afterEach(() => folder.close());

const namesIn = (text: string): string[] => {
  const file = join(folder.path, 'config.yml');
  writeFileSync(file, text);
  return tunnelNames(file);
};

describe('the tunnel names of a config file', () => {
  it('are listed in the order of the file, in any notation', () => {
    expect(namesIn('tunnels:\n  web: { proto: http }\n  "my db": {}\n  22:\n    proto: tcp\n')).toEqual([
      'web',
      'my db',
      '22',
    ]);
  });

  it('are found even if the file is invalid elsewhere', () => {
    expect(namesIn('nonsense: 1\ntunnels:\n  web: { proto: gopher }\n  half: { proto: \n')).toContain('web');
  });

  it('are found in under 1.5 s in a file of ten thousand tunnels', () => {
    const many = Array.from({ length: 10_000 }, (_, index) => `service-${index}`);
    const text = `tunnels:\n${many.map((name) => `  ${name}: { proto: http, local_port: 3000, subdomain: x }\n`).join('')}`;
    const from = performance.now();
    expect(namesIn(text)).toEqual(many);
    // Parsing the whole file as YAML takes several seconds.
    expect(performance.now() - from).toBeLessThan(1500);
  });

  it.each([
    [
      'comments and gaps',
      '# a\ntunnels: # b\n\n  # c\n  web: {}\n# d\n\n  db:\n    proto: tcp # e\nserver: x\n  no: {}\n',
    ],
    ['quoted keys', `tunnels:\n  "a \\"b\\" \\u00fc": {}\n  'it''s': {}\n  "c: d": {}\n  'x#y' : {}\n`],
    ['plain keys of many forms', 'tunnels:\n  a b: {}\n  col:on: {}\n  a#b: {}\n  ünï:\n    proto: tcp\n  22: {}\n'],
    [
      'keys that YAML reads otherwise',
      'tunnels:\n  0x10: {}\n  1e3: {}\n  null: {}\n  true: {}\n  010: {}\n  -x: {}\n',
    ],
    ['anchors and merges', 'x: &x { a: {} }\ntunnels:\n  <<: *x\n  &k web: {}\n'],
    ['complex keys', 'tunnels:\n  ? web\n  : {}\n  ? [a, b]\n  : {}\n'],
    [
      'entries over several lines',
      'tunnels:\n  web: {\n    proto: http,\n    x: 1 }\n  text: |\n    no: 1\n\n    nor: 2\n  db: {}\n',
    ],
    ['CRLF', 'tunnels:\r\n  web: {}\r\n  db:\r\n    proto: tcp\r\n'],
    ['escapes of YAML alone', 'tunnels:\n  "\\x41 \\e": {}\n  "\\\\x": {}\n'],
    ['a flow', 'tunnels: { web: {}, db: {} }\n'],
    ['a quoted word', '"tunnels":\n    web: {}\n'],
    ['an end of the document', 'tunnels:\n  web: {}\n...\n'],
    ['another document', 'tunnels:\n  web: {}\n---\ntunnels:\n  no: {}\n'],
    ['nothing below', 'tunnels:\nserver: x\n'],
    ['a list', 'tunnels:\n  - web\n'],
    ['a text of several lines before', 'note: |\n  x\n\ntunnels:\n  web: {}\n'],
  ])('are the names that the YAML parser finds, with %s', (_, text) => {
    const tunnels = parseAllDocuments(text, { logLevel: 'silent' })[0]?.get('tunnels');
    const keys = isMap(tunnels) ? tunnels.items.map(({ key }) => key) : [];
    expect(namesIn(text)).toEqual(keys.flatMap((key) => (isScalar(key) ? [String(key.value)] : [])));
  });

  it.each([
    ['no tunnels', 'server: a\n'],
    ['a list', 'tunnels: [a]\n'],
    ['nothing', ''],
    ['text', 'tunnels'],
  ])('are empty for a file with %s', (_, text) => {
    expect(namesIn(text)).toEqual([]);
  });

  it('are empty if the file does not exist', () => {
    expect(tunnelNames(join(folder.path, 'missing.yml'))).toEqual([]);
    expect(tunnelNames(folder.path)).toEqual([]);
  });
});
