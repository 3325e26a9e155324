import { expect, it } from 'vitest';
import {
  connectPeerCommand,
  httpTunnelCommand,
  installCommand,
  isLocalServer,
  localServiceCommand,
  loginCommand,
  publicAddress,
} from './client-commands.ts';

it('the login command names the platform and the email address', () => {
  expect(loginCommand('http://localhost:8080/app/', 'ann@example.com')).toBe(
    'tunnel login --platform http://localhost:8080 --email ann@example.com',
  );
  expect(loginCommand('http://tunnel.lan:8080', 'ann@example.com')).toContain('--no-tls');
  expect(loginCommand('https://tunnel.example.com', 'ann@example.com')).not.toContain('--no-tls');
});

it.each([
  ['Mozilla/5.0 (Windows NT 10.0; Win64; x64) Firefox/140.0', 'irm https://tunnels.example.com/install.ps1 | iex'],
  [
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Safari/605.1.15',
    'curl -fsSL https://tunnels.example.com/install | sh',
  ],
  ['Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0.0.0', 'curl -fsSL https://tunnels.example.com/install | sh'],
])('a browser that is %s gets a command for its system', (userAgent, command) => {
  expect(installCommand('https://tunnels.example.com/app/', userAgent)).toBe(command);
});

it('the command to connect a peer reads the secret from a file', () => {
  expect(connectPeerCommand('office-db')).toBe('tunnel p2p connect office-db --listen 15432 --secret-file secret');
});

it('the login command quotes special characters for the shell', () => {
  expect(loginCommand('http://localhost', "o'neil&co@example.com")).toContain(`'o'\\''neil&co@example.com'`);
});

it.each([
  [undefined, 'tunnel http 3000'],
  [{ control: '', control_tls: false }, 'tunnel http 3000'],
  [{ control: '127.0.0.1:4040', control_tls: false }, 'tunnel http 3000'],
  [{ control: '127.0.0.1:4041', control_tls: false }, 'tunnel http 3000 --server 127.0.0.1:4041'],
  [{ control: '127.0.0.1:4040', control_tls: true }, 'tunnel http 3000 --server 127.0.0.1:4040 --tls'],
  [{ control: '[::1]:4040', control_tls: false }, `tunnel http 3000 --server '[::1]:4040'`],
  [{ control: 'eu.example.com:4040', control_tls: true }, 'tunnel http 3000 --server eu.example.com:4040'],
  [{ control: 'eu.example.com:443', control_tls: true }, 'tunnel http 3000 --server eu.example.com:443'],
  [{ control: 'eu.example.com:4040', control_tls: false }, 'tunnel http 3000 --server eu.example.com:4040 --no-tls'],
])('the tunnel command fits the server %o', (server, command) => {
  expect(httpTunnelCommand(3000, server)).toBe(command);
});

it('a public address is a subdomain of the region, or its port', () => {
  const region = { http_url: 'http://localhost:8000' };
  expect(publicAddress({ protocol: 'http', label: 'web' }, region)).toBe('http://web.localhost:8000');
  expect(publicAddress({ protocol: 'tcp', label: '20001' }, region)).toBe('localhost:20001');
  expect(publicAddress({ protocol: 'p2p', label: 'x' }, region)).toBeNull();
  expect(publicAddress({ protocol: 'http', label: '' }, region)).toBeNull();
  expect(publicAddress({ protocol: 'http', label: 'web' }, { http_url: '' })).toBeNull();
  expect(publicAddress({ protocol: 'http', label: 'web' }, undefined)).toBeNull();
});

it('the command for a local test service is a single line that the shell leaves unchanged', () => {
  expect(localServiceCommand(3000)).toBe(
    `node -e "http.createServer((_, r) => r.setHeader('content-type', 'text/plain')` +
      `.end('Hello from my machine\\n')).listen(3000, '127.0.0.1')"`,
  );
});

it.each([
  [['http://localhost:8000'], true],
  [['http://demo.localhost:8000', 'http://127.0.0.1:8000'], true],
  [['http://localhost:8000', 'https://eu.example.com'], false],
  [['https://localhost.example.com'], false],
  [[''], false],
  [[], false],
])('a server with regions at %j is local: %s', (urls, expected) => {
  expect(isLocalServer(urls.map((http_url) => ({ http_url })))).toBe(expected);
});
