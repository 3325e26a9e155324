// Files and settings named in [acme] and by `platform.tls` are checked before a start, and an error names the key.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadServerConfig } from '@tunnel/config/server';
import { testCertificate } from '@tunnel/testkit';
import { afterAll, expect, it } from 'vitest';
import { checkAcmeSettings, isPrivateFile } from './acme-settings.ts';

const dir = mkdtempSync(join(tmpdir(), 'acme-settings-'));
afterAll(() => rmSync(dir, { recursive: true }));

const file = (name: string, text: string, mode = 0o644): string => {
  const path = join(dir, name);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
};

type Parts = Parameters<typeof checkAcmeSettings>[1];

const verdict = (acme: object, parts: Parts = 'edge', more: object = {}): string => {
  const overrides = { server: { domain: 'tunnels.test' }, acme: { enabled: true, ...acme }, ...more };
  try {
    checkAcmeSettings(loadServerConfig({ env: {}, overrides }), parts);
    return 'ok';
  } catch (error) {
    return (error as Error).message;
  }
};

it('acme.ca_file must contain PEM certificates', () => {
  expect(verdict({ ca_file: file('ca.pem', testCertificate().cert) })).toBe('ok');
  expect(verdict({ ca_file: '/nowhere/ca.pem' })).toBe(
    'config: `acme.ca_file` must be a readable file with PEM certificates, got /nowhere/ca.pem (ENOENT)',
  );
  expect(verdict({ ca_file: file('text.pem', 'hello') }, 'platform')).toMatch(
    /`acme\.ca_file` .*, which has no certificate$/,
  );
  expect(verdict({ enabled: false, ca_file: '/nowhere/ca.pem' })).toBe('ok');
});

it('acme.storage_key_file must be readable only by its owner', () => {
  const key = 'A'.repeat(43);
  expect(verdict({ storage_key_file: file('key', key, 0o600) })).toBe('ok');
  for (const mode of [0o640, 0o604]) {
    expect(verdict({ storage_key_file: file('key', key, mode) })).toContain(
      `\`acme.storage_key_file\` must be a file readable only by its owner (chmod 600), got ${dir}/key with mode`,
    );
  }
});

it.each([
  // Columns: mode, owner, verdict for a server with user id 10001.
  [0o600, 10_001, true],
  [0o640, 10_001, false],
  [0o604, 10_001, false],
  // A file of root for the group of the server, as systemd and Kubernetes provide secrets.
  [0o640, 0, true],
  [0o440, 0, true],
  [0o644, 0, false],
])('a key file with mode %o of user %i is private: %s', (mode, uid, isPrivate) => {
  expect(isPrivateFile({ mode: 0o100_000 | mode, uid }, 10_001)).toBe(isPrivate);
});

it('acme.dns_exec must be an executable program', () => {
  const exec = (dns_exec: string) => verdict({ dns: 'exec', dns_exec });
  expect(exec(file('hook', '#!/bin/sh\n', 0o755))).toBe('ok');
  expect(exec('found-by-path')).toBe('ok');
  expect(exec('/nowhere/hook')).toContain('`acme.dns_exec` must be an executable program, got /nowhere/hook (ENOENT)');
  expect(exec(dir)).toContain('it is a directory');
});

it("platform.tls is refused when the edge of the same server serves the platform's URL", () => {
  const platform = { tls: true, public_url: 'https://tunnels.test:8443' };
  expect(verdict({}, 'stack', { platform })).toBe(
    'config: `platform.tls` must be false if `platform.public_url` uses `server.https_port`, because the edge then serves the platform, got true',
  );
  expect(verdict({}, 'platform', { platform })).toBe('ok');
  expect(verdict({}, 'stack', { platform: { ...platform, public_url: 'https://tunnels.test:8080' } })).toBe('ok');
});
