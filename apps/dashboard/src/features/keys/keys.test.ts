import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { fileNameOf, keyCommands } from './keys.ts';

const TOKEN = 'tnl_4fK2mQ9xVbT7RsLpZ0aE8cYh3dUi6nWo1bGjXy';

it('the key goes by a variable, or by a file', () => {
  const { withVariable, withFile } = keyCommands(TOKEN, 'Laptop', undefined);
  expect(withVariable).toBe(`TUNNEL_API_KEY=${TOKEN} npx tunnel http 3000`);
  expect(withFile.endsWith('&& npx tunnel http 3000 --token-file ~/.tunnel/laptop.key')).toBe(true);
});

it('names the server when the client would not find it by itself', () => {
  const { withVariable, withFile } = keyCommands(TOKEN, 'a', { control: 'edge.example.com:4040', control_tls: true });
  expect(withVariable).toContain('npx tunnel http 3000 --server edge.example.com:4040');
  expect(withFile).toContain('--server edge.example.com:4040 --token-file ~/.tunnel/a.key');
});

it('works as pasted: the file has the key, and nobody else can read it', () => {
  const home = mkdtempSync(join(tmpdir(), 'key-commands-'));
  const { withFile } = keyCommands(TOKEN, "it's; $(rm) 'laptop'", undefined);
  const command = withFile.replace('npx tunnel', 'echo');
  const printed = execFileSync('/bin/sh', ['-c', command], { env: { HOME: home, PATH: '/usr/bin:/bin' } }).toString();
  const file = join(home, '.tunnel/it-s-rm-laptop.key');
  expect(printed.trim()).toBe(`http 3000 --token-file ${file}`);
  expect(readFileSync(file, 'utf8').trim()).toBe(TOKEN);
  expect(statSync(file).mode & 0o077).toBe(0);
  rmSync(home, { recursive: true });
});

it.each([
  ['Büro-Rechner', 'bu-ro-rechner'],
  ['../../etc/passwd', 'etc-passwd'],
  ['日本', 'tunnel'],
  ['x'.repeat(100), 'x'.repeat(40)],
])('the file of %j is %j', (label, name) => {
  expect(fileNameOf(label)).toBe(name);
});
