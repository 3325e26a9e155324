import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { loadClientConfig } from './client-config.ts';

let directory: TemporaryDirectory;
let file: string;

beforeEach(async () => {
  directory = await temporaryDirectory();
  file = join(directory.path, 'config.yml');
});

afterEach(() => directory.close());

test('a group key comes from the config file, a variable or a key file, and is never printed', async () => {
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

test("a group key file is relative to the config file's folder or to home, without its last line break", async () => {
  const home = await temporaryDirectory();
  await writeFile(join(directory.path, 'key'), 'beside the file\r\n');
  await writeFile(join(home.path, 'key'), '\ufeffat home \n\n');
  await writeFile(
    file,
    `tunnels:
  one: { proto: tcp, local_port: 1, group: g, group_key_file: key }
  two: { proto: tcp, local_port: 2, group: g, group_key_file: ~/key }
`,
  );
  const { tunnels } = loadClientConfig({ file, env: {}, home: home.path });
  expect([tunnels['one']?.group_key?.reveal(), tunnels['two']?.group_key?.reveal()]).toEqual([
    'beside the file',
    'at home \n',
  ]);
  await home.close();
});

test.each([
  ['', 'it is empty'],
  ['\n', 'it is empty'],
  [Buffer.from([0xff, 0xfe, 0x41]), 'it is not UTF-8 text'],
  ['x'.repeat(70_000), 'it is larger than 65536 bytes'],
])('an invalid group key file is refused with its line in the config: %#', async (content, reason) => {
  await writeFile(join(directory.path, 'key'), content);
  await writeFile(file, 'tunnels:\n  one:\n    {proto: tcp, local_port: 1, group: g, group_key_file: key}\n');
  expect(() => loadClientConfig({ file, env: {} })).toThrow(
    `:3: \`tunnels.one.group_key_file\` must be a file with the key, got "key": ${reason}`,
  );
});

test('a health check works without a group, and an alert webhook without a probe', async () => {
  await writeFile(
    file,
    `tunnels:
  probed: { proto: tcp, local_port: 1, health_check: { type: tcp, path: /ignored, interval_secs: 0.5, timeout_secs: 0.25 } }
  alerted: { proto: tcp, local_port: 2, group: g, group_key: k, health_check: { alert_webhook: "http://127.0.0.1:9/" } }
`,
  );
  const { tunnels } = loadClientConfig({ file, env: {} });
  expect(tunnels['probed']?.health_check).toMatchObject({ type: 'tcp', interval_secs: 0.5, timeout_secs: 0.25 });
  expect(tunnels['alerted']?.health_check).toEqual({
    alert_webhook: 'http://127.0.0.1:9/',
    interval_secs: 10,
    timeout_secs: 3,
    max_failed: 3,
    expect_2xx: true,
  });
});

test("socket and folder paths are relative to the config file's folder or to home", async () => {
  await writeFile(
    file,
    `tunnels:
  app: { proto: http, local_socket: run/app.sock }
  db: { proto: tcp, local_socket: ~/db.sock }
  site: { proto: http, files: { dir: ./dist, listing: true } }
`,
  );
  const { tunnels } = loadClientConfig({ file, env: {}, home: '/home/me' });
  expect(tunnels['app']?.local_socket).toBe(join(directory.path, 'run/app.sock'));
  expect(tunnels['db']?.local_socket).toBe('/home/me/db.sock');
  expect(tunnels['site']?.files).toEqual({ dir: join(directory.path, 'dist'), spa: false, listing: true });
});

test('the client config is deeply frozen, and every tunnel knows its line', async () => {
  await writeFile(
    file,
    '# first line\ntunnels:\n  web: { proto: tcp, local_port: 1 }\n\n  "my db":\n    proto: tcp\n    local_port: 2\n',
  );
  const { tunnels } = loadClientConfig({ file, env: {} });
  expect([tunnels['web']?.line, tunnels['my db']?.line]).toEqual([3, 5]);
  expect(Object.isFrozen(tunnels) && Object.isFrozen(tunnels['web'])).toBe(true);
});

test('a YAML alias bomb is refused without expansion', async () => {
  const levels = Array.from(
    { length: 12 },
    (_, i) =>
      `a${i}: &a${i} [${Array(9)
        .fill(i === 0 ? 'x' : `*a${i - 1}`)
        .join(',')}]`,
  );
  await writeFile(file, `${levels.join('\n')}\n`);
  expect(() => loadClientConfig({ file, env: {} })).toThrow('too many aliases');
});

test('a second YAML document is refused with its line, not ignored', async () => {
  await writeFile(file, 'server: 127.0.0.1:4040\n---\nserver: 127.0.0.1:4041\n');
  expect(() => loadClientConfig({ file, env: {} })).toThrow(/config\.yml:\d+: a second document starts here/);
  await writeFile(file, '---\nserver: 127.0.0.1:4040\n...\n');
  expect(loadClientConfig({ file, env: {} }).server).toBe('127.0.0.1:4040');
});

test('config text that was already read is used instead of the current file', async () => {
  await writeFile(file, '');
  const { tunnels } = loadClientConfig({ file, text: 'tunnels: { a: { proto: tcp, local_port: 1 } }', env: {} });
  expect(Object.keys(tunnels)).toEqual(['a']);
});
