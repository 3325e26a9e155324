import { expect, it } from 'vitest';
import { platformHostAtEdge } from './platform-host.ts';
import { loadServerConfig } from './server-config.ts';

const hostOf = (overrides: object): string | null => platformHostAtEdge(loadServerConfig({ env: {}, overrides }));

const PUBLIC = { domain: 'tunnels.example.com', http_port: 80, https_port: 443 };

it('the edge answers for the platform where its address is one of the edge: by https with a certificate, or in clear', () => {
  const acme = { enabled: true };
  const at = (public_url: string, more: object = { acme }) =>
    hostOf({ server: PUBLIC, platform: { public_url }, ...more });
  expect(at('https://tunnels.example.com')).toBe('tunnels.example.com');
  expect(at('https://Console.example.NET/')).toBe('console.example.net');
  expect(at('https://tunnels.example.com:443')).toBe('tunnels.example.com');
  expect(at('http://tunnels.example.com', {})).toBe('tunnels.example.com');
  expect(at('https://tunnels.example.com', { tls: { cert_path: 'a.pem', key_path: 'b.pem' } })).not.toBeNull();
});

it('it does not where the address has another port, no certificate will be there, or the platform speaks TLS itself', () => {
  const at = (public_url: string, more: object) => hostOf({ server: PUBLIC, platform: { public_url }, ...more });
  expect(hostOf({})).toBeNull();
  expect(at('https://tunnels.example.com', {})).toBeNull();
  expect(at('https://tunnels.example.com:8443', { acme: { enabled: true } })).toBeNull();
  expect(at('http://tunnels.example.com:8080', { acme: { enabled: true } })).toBeNull();
  const own = { public_url: 'https://tunnels.example.com', tls: true };
  expect(hostOf({ server: PUBLIC, acme: { enabled: true }, platform: own })).toBeNull();
});
