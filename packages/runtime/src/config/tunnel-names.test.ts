import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
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

describe('the names of the tunnels', () => {
  it('are those of the file, in its order, whatever form they have', () => {
    expect(namesIn('tunnels:\n  web: { proto: http }\n  "my db": {}\n  22:\n    proto: tcp\n')).toEqual([
      'web',
      'my db',
      '22',
    ]);
  });

  it('are found in a file that is not good otherwise', () => {
    expect(namesIn('nonsense: 1\ntunnels:\n  web: { proto: gopher }\n  half: { proto: \n')).toContain('web');
  });

  it.each([
    ['no tunnels', 'server: a\n'],
    ['a list', 'tunnels: [a]\n'],
    ['nothing', ''],
    ['text', 'tunnels'],
  ])('are none in a file with %s', (_, text) => {
    expect(namesIn(text)).toEqual([]);
  });

  it('are none where there is no file', () => {
    expect(tunnelNames(join(folder.path, 'missing.yml'))).toEqual([]);
    expect(tunnelNames(folder.path)).toEqual([]);
  });
});
