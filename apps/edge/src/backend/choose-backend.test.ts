import { expect, it } from 'vitest';
import { describeReach } from './choose-backend.ts';

const at = (
  host: string,
  domain: string,
  ports: { http?: number; https?: number } = {},
  isPublic = true,
  isCovered = true,
) =>
  describeReach(
    { server: { domain, control_on_public: isPublic } },
    {
      control: { host, port: 4040 },
      http: { port: ports.http ?? 8000 },
      https: ports.https === undefined ? null : { port: ports.https },
      isControlSecure: ports.https !== undefined,
      isCovered: ports.https !== undefined && isCovered,
    },
  );

it('on a loopback address, clients connect to the address the edge listens on', () => {
  expect(at('127.0.0.1', 'localhost')).toEqual({
    control: '127.0.0.1:4040',
    control_tls: false,
    http_url: 'http://localhost:8000',
  });
  expect(at('::1', 'localhost').control).toBe('[::1]:4040');
});

it('on a non-loopback address, clients connect to the domain, and URLs omit default ports', () => {
  expect(at('0.0.0.0', 'tunnels.example.com', { http: 80, https: 443 })).toEqual({
    control: 'tunnels.example.com:443',
    control_tls: true,
    http_url: 'https://tunnels.example.com',
  });
  expect(at('0.0.0.0', 'tunnels.example.com', { https: 8443 }).control).toBe('tunnels.example.com:8443');
  expect(at('0.0.0.0', 'tunnels.example.com', { https: 443 }, false).control).toBe('tunnels.example.com:4040');
  expect(at('0.0.0.0', 'tunnels.example.com', { http: 80 }).control).toBe('tunnels.example.com:4040');
  expect(at('10.0.0.4', 'tunnels.example.com', { http: 80 }).http_url).toBe('http://tunnels.example.com');
});

it('before the first certificate, the URL for visitors is unencrypted, and clients connect over TLS', () => {
  expect(at('0.0.0.0', 'tunnels.example.com', { http: 80, https: 443 }, true, false)).toEqual({
    control: 'tunnels.example.com:443',
    control_tls: true,
    http_url: 'http://tunnels.example.com',
  });
});
