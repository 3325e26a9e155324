import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { addPublicFlags, type PublicFlags, publicOverrides } from './public-flags.ts';
import { loadStackConfig } from './shared.ts';

/** Parses the flags. Returns an error message if the flags are refused. */
const read = (...args: string[]): PublicFlags | string => {
  let flags: PublicFlags | undefined;
  let said = '';
  const command = addPublicFlags(new Command('stack'))
    .exitOverride()
    .configureOutput({
      writeErr: (text) => {
        said += text;
      },
    })
    .action((given: PublicFlags) => {
      flags = given;
    });
  try {
    command.parse(args, { from: 'user' });
  } catch {
    return said.trim();
  }
  return flags ?? said;
};

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'tunnel-public-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const load = (args: readonly string[], toml?: string, env: NodeJS.ProcessEnv = {}) => {
  const flags = read(...args);
  if (typeof flags === 'string') throw new Error(flags);
  if (toml === undefined) return loadStackConfig({}, env, publicOverrides(flags));
  const config = join(dir, 'server.toml');
  writeFileSync(config, toml);
  return loadStackConfig({ config }, env, publicOverrides(flags));
};

describe('the flag --public', () => {
  it('sets the keys of a public server, with or without a config file', () => {
    const config = load(['--public', 'Tunnels.Example.COM.', '--acme-email', 'admin@example.com']);
    expect(config.server).toMatchObject({
      host: '0.0.0.0',
      api_host: '127.0.0.1',
      domain: 'tunnels.example.com',
      http_port: 80,
      https_port: 443,
    });
    expect(config.acme).toMatchObject({ enabled: true, email: 'admin@example.com', dns: 'builtin' });
    expect(config.platform).toMatchObject({ public_url: 'https://tunnels.example.com', host: '127.0.0.1' });
    expect(config.load_balancing.enabled).toBe(true);
    expect(load(['--public', 'tünnel.example'], '').server.domain).toBe('xn--tnnel-kva.example');
  });

  it('overrides its keys in file and environment, and keeps every other key', () => {
    const toml = `
[server]
host = "192.0.2.1"
http_port = 8000
control_port = 4444
domain = "other.example"
[acme]
directory = "https://ca.example/directory"
email = "file@example.com"
dns = "none"
[platform]
public_url = "https://other.example"
sign_up = "invite"
`;
    const args = ['--public', 'tunnels.example.com', '--platform-host', 'console.example.net'];
    const config = load(args, toml, { TUNNEL_SERVER__HTTPS_PORT: '9443' });
    expect(config.server).toMatchObject({ host: '0.0.0.0', http_port: 80, https_port: 443, control_port: 4444 });
    expect(config.acme).toMatchObject({ directory: 'https://ca.example/directory', email: 'file@example.com' });
    expect(config.acme).toMatchObject({ enabled: true, dns: 'builtin' });
    expect(config.platform).toMatchObject({ public_url: 'https://console.example.net', sign_up: 'invite' });
  });

  it.each([
    ['a@b', 'not a host name'],
    ['localhost', 'at least two labels'],
    ['192.0.2.1', 'an address'],
    ['*.tunnels.example.com', 'Leave out the `*.`'],
    ['https://tunnels.example.com', 'not a host name'],
    ['tunnels.localhost', 'below localhost'],
    ['a..example.com', 'not a host name'],
  ])('refuses %s with a one-line reason', (domain, reason) => {
    for (const flag of [['--public'], ['--public', 'tunnels.example.com', '--platform-host']]) {
      const said = read(...flag, domain);
      expect(said).toContain(reason);
      expect(said).not.toContain('\n');
    }
  });

  it('refuses an invalid email address, and flags that need --public or contradict it', () => {
    for (const address of [
      'admin',
      'admin@',
      'a b@example.com',
      'a@example.com, b@example.com',
      'admin@localhost',
      'a\u001b[2J@x.test',
      'a@x.test\n',
      'a@x.test?cc=b',
      'é@x.test',
    ]) {
      expect(read('--public', 'tunnels.example.com', '--acme-email', address)).toContain('admin@example.com');
    }
    expect(read('--acme-email', 'admin@example.com')).toBe('error: --acme-email needs --public DOMAIN');
    expect(read('--platform-host', 'console.example.net')).toBe('error: --platform-host needs --public DOMAIN');
    expect(read('--public', 'tunnels.example.com', '--local-tls')).toContain('cannot be used with');
  });
});

it('--local-tls sets tls.local_ca, and is refused with a public domain', () => {
  expect(load(['--local-tls']).tls.local_ca).toBe(true);
  expect(load(['--local-tls'], '[server]\nhttp_port = 8001\n')).toMatchObject({
    tls: { local_ca: true },
    server: { http_port: 8001, domain: 'localhost' },
  });
  expect(() => load(['--local-tls'], '[server]\ndomain = "tunnels.example.com"\n')).toThrow(/local_ca/);
});
