import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { loadClientConfig } from './load-client-config.ts';

let directory: TemporaryDirectory;
let file: string;

beforeEach(async () => {
  directory = await temporaryDirectory();
  file = join(directory.path, 'config.yml');
});

afterEach(() => directory.close());

test('a group key is found in the file, in a variable or in a file of its own, and never prints', async () => {
  const keyFile = join(directory.path, 'key');
  await writeFile(keyFile, 'key three\n');
  await writeFile(
    file,
    `tunnels:
  one: { proto: tcp, local_port: 1, group: g, group_key: key one }
  two: { proto: tcp, local_port: 2, group: g, group_key_env: KEY_TWO }
  three: { proto: tcp, local_port: 3, group: g, group_key_file: ${keyFile} }
  four: { proto: tcp, local_port: 4 }
`,
  );
  const config = loadClientConfig({ file, env: { KEY_TWO: 'key two' } });
  const keys = ['one', 'two', 'three', 'four'].map((name) => config.tunnels[name]?.group_key?.reveal());
  expect(keys).toEqual(['key one', 'key two', 'key three', undefined]);
  expect(inspect(config, { depth: 9 }) + JSON.stringify(config)).not.toMatch(/key (one|two|three)/);
});

test('it is frozen all the way down, and every tunnel knows its line', async () => {
  await writeFile(
    file,
    '# first line\ntunnels:\n  web: { proto: tcp, local_port: 1 }\n\n  "my db":\n    proto: tcp\n    local_port: 2\n',
  );
  const { tunnels } = loadClientConfig({ file, env: {} });
  expect([tunnels['web']?.line, tunnels['my db']?.line]).toEqual([3, 5]);
  expect(Object.isFrozen(tunnels) && Object.isFrozen(tunnels['web'])).toBe(true);
});

test('an alias bomb is refused, not unrolled', async () => {
  const levels = Array.from(
    { length: 12 },
    (_, i) =>
      `a${i}: &a${i} [${Array(9)
        .fill(i === 0 ? 'x' : `*a${i - 1}`)
        .join(',')}]`,
  );
  await writeFile(file, `${levels.join('\n')}\n`);
  expect(() => loadClientConfig({ file, env: {} })).toThrow('there are too many aliases');
});
