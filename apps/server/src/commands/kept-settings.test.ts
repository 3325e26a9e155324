import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { keepSettings, keptText, keysBesideFile } from './kept-settings.ts';
import { publicOverrides } from './public-flags.ts';
import { judgeConfig } from './server-commands.ts';
import { loadConfig, loadStackConfig } from './shared.ts';

const FLAGS = { public: 'tunnels.example.com', acmeEmail: 'admin@example.com', platformHost: 'console.example.net' };

let folder: TemporaryDirectory;
beforeEach(async () => {
  folder = await temporaryDirectory();
});
afterEach(() => folder.close());

it('a start with --public saves a settings file, and later starts without flags read the same settings', () => {
  const dataDir = folder.path;
  const first = loadStackConfig({ dataDir }, {}, publicOverrides(FLAGS));
  expect(keepSettings(dataDir, FLAGS)).toBe(join(dataDir, 'server.toml'));
  expect(statSync(join(dataDir, 'server.toml')).mode & 0o777).toBe(0o600);
  expect(loadStackConfig({ dataDir }, {})).toEqual(first);
  // Operator commands read the same file without the defaults of a full server.
  expect(loadConfig({ dataDir }, {})).toEqual(first);
  expect(loadConfig({}, { TUNNEL_DATA_DIR: dataDir })).toEqual(first);
  expect(first.platform).toMatchObject({
    public_url: 'https://console.example.net',
    plans: { free: { tunnel_limit: 100 } },
  });
  expect(first.load_balancing.enabled).toBe(true);
});

it('the saved settings file is readable and has comments', () => {
  expect(
    keptText({ public: 'tunnels.example.com' }),
  ).toBe(`# Written by the first start with --public tunnels.example.com. You can edit this file.
# All tunnel-server commands read this file; flags override it. All keys: docs/configuration.md.

[server]
host = "0.0.0.0"                # visitors and clients, on every IPv4 address; "::" adds IPv6
api_host = "127.0.0.1"          # edge API: this machine only
domain = "tunnels.example.com"  # tunnels are at <name>.<domain>
http_port = 80                  # redirects visitors to https
https_port = 443                # visitors and clients

[acme]
enabled = true   # certificates are issued and renewed automatically
dns = "builtin"  # this server answers the challenges for wildcard certificates

[load_balancing]
enabled = true  # groups: several computers behind the same URL

[platform]
public_url = "https://tunnels.example.com"  # dashboard and API

[platform.plans.free]
tunnel_limit = 100  # open tunnels per account
`);
});

it('an existing settings file stays unchanged, and flags override the file for a single start', () => {
  const dataDir = folder.path;
  writeFileSync(join(dataDir, 'server.toml'), '[server]\ndomain = "old.example.com"\ncontrol_port = 4444\n');
  expect(keepSettings(dataDir, FLAGS)).toBeNull();
  expect(readFileSync(join(dataDir, 'server.toml'), 'utf8')).toContain('old.example.com');
  const { server } = loadStackConfig({ dataDir }, {}, publicOverrides(FLAGS));
  expect(server).toMatchObject({ domain: 'tunnels.example.com', control_port: 4444 });
  const keys = keysBesideFile(FLAGS, loadConfig({ dataDir }, {}));
  expect(keys).toContain('server.domain');
  expect(keys).not.toContain('server.control_port');
  writeFileSync(join(dataDir, 'server.toml'), keptText(FLAGS));
  expect(keysBesideFile(FLAGS, loadConfig({ dataDir }, {}))).toEqual([]);
});

it('--config takes precedence over the file in the data directory, and this file over the built-in defaults', async () => {
  const dataDir = folder.path;
  const config = join(dataDir, 'elsewhere.toml');
  writeFileSync(config, '[server]\ncontrol_port = 4441\n');
  expect(await judgeConfig({ dataDir }, {})).toMatchObject({ text: 'ok: built-in defaults', warnings: [] });
  writeFileSync(join(dataDir, 'server.toml'), '[server]\ncontrol_port = 4442\n');
  expect(loadConfig({ dataDir, config }, {}).server.control_port).toBe(4441);
  expect(loadConfig({ dataDir }, {}).server.control_port).toBe(4442);
  expect(loadConfig({ dataDir: join(dataDir, 'none') }, {}).server.control_port).toBe(4040);
  expect(await judgeConfig({ dataDir }, {})).toMatchObject({
    text: `ok: ${join(dataDir, 'server.toml')}`,
    warnings: [{ key: 'load_balancing.enabled' }],
  });
  writeFileSync(join(dataDir, 'server.toml'), 'surprise = 1\n');
  expect((await judgeConfig({ dataDir }, {})).text).toContain(`${join(dataDir, 'server.toml')}:1: unknown key`);
});

it('a data directory that cannot be written is named in the error', () => {
  mkdirSync(join(folder.path, 'server.toml.new'));
  expect(() => keepSettings(folder.path, FLAGS)).toThrow(/data directory/);
});
