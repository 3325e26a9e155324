import { expect, it } from 'vitest';
import { platformHostAtEdge } from './platform-host.ts';
import { loadServerConfig } from './server-config.ts';

const hostOf = (overrides: object): string | null => platformHostAtEdge(loadServerConfig({ env: {}, overrides }));

const PUBLIC = { domain: 'tunnels.example.com', http_port: 80, https_port: 443 };

it('the edge serves the platform at a public_url on its own ports: over https with a certificate, or over http', () => {
  const acme = { enabled: true };
  const at = (public_url: string, more: object = { acme }) =>
    hostOf({ server: PUBLIC, platform: { public_url }, ...more });
  expect(at('https://tunnels.example.com')).toBe('tunnels.example.com');
  expect(at('https://Console.example.NET/')).toBe('console.example.net');
  expect(at('https://tunnels.example.com:443')).toBe('tunnels.example.com');
  expect(at('http://tunnels.example.com', {})).toBe('tunnels.example.com');
  expect(at('https://tunnels.example.com', { tls: { cert_path: 'a.pem', key_path: 'b.pem' } })).not.toBeNull();
});

it('the edge serves the platform at the published ports, and no longer at its own ports', () => {
  const published = { domain: 'tunnels.example.com', public_http_port: 80, public_https_port: 443 };
  const at = (public_url: string) => hostOf({ server: published, acme: { enabled: true }, platform: { public_url } });
  expect(at('https://tunnels.example.com')).toBe('tunnels.example.com');
  expect(at('http://tunnels.example.com')).toBe('tunnels.example.com');
  expect(at('https://tunnels.example.com:8443')).toBeNull();
});

it('the edge does not serve the platform on another port, without a certificate, or if the platform has its own TLS', () => {
  const at = (public_url: string, more: object) => hostOf({ server: PUBLIC, platform: { public_url }, ...more });
  expect(hostOf({})).toBeNull();
  expect(at('https://tunnels.example.com', {})).toBeNull();
  expect(at('https://tunnels.example.com:8443', { acme: { enabled: true } })).toBeNull();
  expect(at('http://tunnels.example.com:8080', { acme: { enabled: true } })).toBeNull();
  const own = { public_url: 'https://tunnels.example.com', tls: true };
  expect(hostOf({ server: PUBLIC, acme: { enabled: true }, platform: own })).toBeNull();
});
