import { loadServerConfig } from '@tunnel/runtime';
import { expect, it } from 'vitest';
import { trustNotes } from './local-trust.ts';

const facts = { dataDir: '/srv/tunnel/data', workingDir: '/srv/tunnel', system: 'linux' as NodeJS.Platform };
const withAuthority = loadServerConfig({ env: {}, overrides: { tls: { local_ca: true } } });

it('says nothing without a local authority', () => {
  expect(trustNotes(loadServerConfig({ env: {} }), facts)).toEqual([]);
});

it.each([
  ['linux', 'sudo cp data/local-ca/ca.pem /usr/local/share/ca-certificates/tunnel-local.crt'],
  ['darwin', 'sudo security add-trusted-cert -d -r trustRoot'],
  ['win32', 'certutil -addstore -f ROOT data/local-ca/ca.pem'],
  ['freebsd', 'sudo trust anchor data/local-ca/ca.pem'],
] as const)('names the file and the command of %s', (system, command) => {
  const notes = trustNotes(withAuthority, { ...facts, system }).join('\n');
  expect(notes).toContain(command);
  expect(notes).toContain('NODE_EXTRA_CA_CERTS=data/local-ca/ca.pem');
});

it('names a folder elsewhere whole, and one with spaces so that a shell reads it', () => {
  const elsewhere = { ...facts, workingDir: '/home/me', dataDir: '/srv/my data' };
  expect(trustNotes(withAuthority, elsewhere)[0]).toContain('"/srv/my data/local-ca/ca.pem"');
});
