import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { CHECKOUT, fileNameOf, keyCommands, liveTunnelsText, mcpConfigs } from './keys.ts';

const TOKEN = 'tnl_4fK2mQ9xVbT7RsLpZ0aE8cYh3dUi6nWo1bGjXy';

it('the commands for a new API key pass it in a variable or in a file', () => {
  const { withVariable, withFile } = keyCommands(TOKEN, 'Laptop', undefined);
  expect(withVariable).toBe(`TUNNEL_API_KEY=${TOKEN} tunnel http 3000`);
  expect(withFile.endsWith('&& tunnel http 3000 --token-file ~/.tunnel/laptop.key')).toBe(true);
});

it('the commands for a new API key name a server other than the default', () => {
  const { withVariable, withFile } = keyCommands(TOKEN, 'a', { control: 'edge.example.com:4040', control_tls: true });
  expect(withVariable).toContain('tunnel http 3000 --server edge.example.com:4040');
  expect(withFile).toContain('--server edge.example.com:4040 --token-file ~/.tunnel/a.key');
});

it('the pasted command saves the API key in a file that only the user can read', () => {
  const home = mkdtempSync(join(tmpdir(), 'key-commands-'));
  const { withFile } = keyCommands(TOKEN, "it's; $(rm) 'laptop'", undefined);
  const command = withFile.replace('&& tunnel', '&& echo');
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
])('the key file for the label %j is named %j', (label, name) => {
  expect(fileNameOf(label)).toBe(name);
});

it('MCP configs pass the API key to the local client in a variable, and to the platform in a header', () => {
  const server = { control: '[::1]:4040', control_tls: true };
  const { stdio, remote } = mcpConfigs(TOKEN, 'https://tunnel.example.com/app/keys', server);
  expect(JSON.parse(stdio)).toEqual({
    mcpServers: {
      tunnel: {
        command: 'node',
        // No shell reads these arguments, so they are not quoted.
        args: [`${CHECKOUT}/apps/cli/bin/tunnel-mcp.mjs`, '--server', '[::1]:4040', '--tls'],
        env: { TUNNEL_API_KEY: TOKEN },
      },
    },
  });
  expect(JSON.parse(remote)).toEqual({
    mcpServers: {
      tunnel: {
        type: 'http',
        url: 'https://tunnel.example.com/mcp',
        headers: { Authorization: `Bearer ${TOKEN}` },
      },
    },
  });
});

it('the local MCP config starts an existing program', () => {
  const { stdio } = mcpConfigs(TOKEN, 'http://localhost', undefined);
  const [, program = ''] = /"\/path\/to\/tunnel\/(.*)"/.exec(stdio) ?? [];
  expect(existsSync(join(import.meta.dirname, '../../../../..', program)), program).toBe(true);
});

it.each([
  [{ active_tunnels: 0 }, 'No live tunnels use this key.'],
  [{ active_tunnels: 1 }, 'Closes 1 live tunnel within 2 seconds.'],
  [{ active_tunnels: 1200 }, 'Closes 1,200 live tunnels within 2 seconds.'],
  [{}, 'Tunnels using this key are closed within 2 seconds.'],
])('the dialog to revoke a key with %j says: %s', (key, text) => {
  expect(liveTunnelsText(key)).toBe(text);
});
