import { loadClientConfig } from '@tunnel/config/client';
import { describe, expect, it } from 'vitest';
import { ALLOWED_BY_DEFAULT } from './mcp-allow.rules.ts';
import { wantedTunnel } from './wanted-tunnel.ts';

const env = { TUNNEL_P2P_SECRET: 'a secret of sixteen bytes and more' };
const wanted = (
  input: Partial<Parameters<typeof wantedTunnel>[0]>,
  allow = ALLOWED_BY_DEFAULT,
  io: object = { env: {} },
) => wantedTunnel({ protocol: 'http', local_port: 3000, ...input }, allow, io as { env: typeof env });

describe('a tunnel that a model asks for', () => {
  it('is refused for a target outside the list, with the flag that would allow it', () => {
    expect(() => wanted({ local_host: '10.0.0.5', local_port: 80 })).toThrow(
      expect.objectContaining({
        code: 'MCP_TARGET_NOT_ALLOWED',
        message: expect.stringContaining('10.0.0.5:80'),
        next: expect.stringContaining('10.0.0.5:80'),
      }),
    );
    expect(() => wanted({ local_host: 'fd00::1' })).toThrow(/\[fd00::1\]:3000/);
    expect(() => wanted({}, [])).toThrow(expect.objectContaining({ code: 'MCP_TARGET_NOT_ALLOWED' }));
  });

  it('is checked against the list before any other field', () => {
    expect(() => wanted({ protocol: 'p2p', local_port: 22, p2p_name: '?' })).toThrow(
      expect.objectContaining({ code: 'MCP_TARGET_NOT_ALLOWED' }),
    );
  });

  it('is dialed at the same normalized host that was checked', () => {
    expect(wanted({ local_host: '[::1]' }).spec.local_host).toBe('::1');
    expect(wanted({ local_host: 'LOCALHOST.' }).spec.local_host).toBe('localhost');
    for (const local_host of ['127.0.0.1.', 'localhost..', '[localhost]']) {
      expect(() => wanted({ local_host })).toThrow(expect.objectContaining({ code: 'MCP_TARGET_NOT_ALLOWED' }));
    }
  });

  it('becomes a tunnel spec of the client', () => {
    const input = { subdomain: 'shop', host_header: 'rewrite', name: 'web' };
    expect(wanted(input)).toEqual({
      spec: {
        proto: 'http',
        local_host: '127.0.0.1',
        local_port: 3000,
        subdomain: 'shop',
        host_header: 'rewrite',
        name: 'web',
      },
      isNamed: true,
    });
    expect(wanted({ protocol: 'tls', domain: 'shop.example.com' }).spec).toEqual({
      proto: 'tls',
      local_host: '127.0.0.1',
      local_port: 3000,
      domain: 'shop.example.com',
    });
    expect(wanted({ protocol: 'tcp', remote_port: 20_001, local_host: 'localhost' })).toEqual({
      spec: { proto: 'tcp', local_host: 'localhost', local_port: 3000, remote_port: 20_001 },
      isNamed: false,
    });
  });

  it.each([
    [{ host_header: 'a b' }, /Host header/],
    [{ subdomain: 'x'.repeat(400) }, /63 characters/],
    [{ name: 'x'.repeat(1_000_000) }, /name/],
    [{ protocol: 'tcp', subdomain: 'x' }, /subdomain/],
    [{ protocol: 'tls' }, /needs a domain or a subdomain/],
    [{ subdomain: 'a', domain: 'a.example.com' }, /not both/],
  ] as const)('is refused with a reason when its fields are invalid: %j', (input, words) => {
    expect(() => wanted(input)).toThrow(words);
  });

  it('gets a p2p secret only from the environment', () => {
    const input = { protocol: 'p2p', p2p_name: 'office', p2p_service: 'udp' } as const;
    expect(() => wanted(input)).toThrow(expect.objectContaining({ code: 'MCP_P2P_SECRET_MISSING' }));
    const { spec, isNamed } = wanted(input, ALLOWED_BY_DEFAULT, { env });
    expect([spec.p2p_publish, spec.p2p_service, isNamed]).toEqual(['office', 'udp', true]);
    expect(JSON.stringify(spec)).not.toContain(env.TUNNEL_P2P_SECRET);
  });
});

it('by default config.yml allows the default targets and is not read-only', () => {
  const { mcp } = loadClientConfig({ file: '/nowhere/config.yml', text: '{}', env: {}, home: '/nowhere' });
  expect([mcp.allow, mcp.read_only]).toEqual([ALLOWED_BY_DEFAULT, false]);
});
