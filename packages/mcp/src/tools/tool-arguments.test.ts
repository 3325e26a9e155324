// Invalid arguments of a model give a one-line tool error with the name of the argument, and the host is not called.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ScriptedHost, type Served, serve } from './scripted-host.fixture.ts';
import { TOOL_NAMES } from './tool-host.ts';

const LONG = 'x'.repeat(1_000_000);

const REFUSED: readonly (readonly [tool: string, given: Record<string, unknown>, reason: string])[] = [
  ['get_tunnel', {}, 'tunnel: is missing'],
  ['get_tunnel', { tunnel: 5 }, 'tunnel: must be a string'],
  ['get_tunnel', { tunnel: null }, 'tunnel: must be a string'],
  ['get_tunnel', { tunnel: '' }, 'tunnel: must not be empty'],
  ['get_tunnel', { tunnel: LONG }, 'tunnel: must have at most 260 characters'],
  ['get_tunnel', { tunnel: 'a\0b' }, 'tunnel: contains an invalid character'],
  ['get_tunnel', { tunnel: '\ud800' }, 'tunnel: contains an invalid character'],
  ['get_tunnel', { tunnel: 'web', [LONG]: 1 }, `unknown argument "${'x'.repeat(80)}…"`],
  ['list_tunnels', { state: 'closed' }, 'state: must be one of active, ended'],
  ['list_tunnels', { limit: 0 }, 'limit: must be a whole number from 1 to 100'],
  ['list_tunnels', { limit: 101 }, 'limit: must be a whole number from 1 to 100'],
  ['list_tunnels', { limit: 1.5 }, 'limit: must be a whole number from 1 to 100'],
  ['list_tunnels', { limit: '20' }, 'limit: must be a whole number from 1 to 100'],
  ['list_tunnels', { limit: 1e300 }, 'limit: must be a whole number from 1 to 100'],
  ['list_requests', { tunnel: 'web', limit: 51 }, 'limit: must be a whole number from 1 to 50'],
  ['list_requests', { tunnel: 'web', status: 99 }, 'status: must be a whole number from 100 to 599'],
  ['list_requests', { tunnel: 'web', method: {} }, 'method: must be a string'],
  ['list_requests', { tunnel: 'web', path_contains: LONG }, 'path_contains: must have at most 1024 characters'],
  ['wait_for_request', { tunnel: 'web', timeout_secs: 301 }, 'timeout_secs: must be a whole number from 1 to 300'],
  ['wait_for_request', { tunnel: 'web', timeout_secs: 0 }, 'timeout_secs: must be a whole number from 1 to 300'],
  ['get_request', { tunnel: 'web' }, 'request_id: is missing'],
  ['replay_request', { tunnel: 'web', request_id: ['req_1'] }, 'request_id: must be a string'],
  ['get_usage', { days: 91 }, 'days: must be a whole number from 1 to 90'],
  ['open_tunnel', { local_port: 3000 }, 'protocol: is missing'],
  ['open_tunnel', { protocol: 'ftp', local_port: 3000 }, 'protocol: must be one of http, https, tcp, tls, udp, p2p'],
  ['open_tunnel', { protocol: 'http' }, 'local_port: is missing'],
  ['open_tunnel', { protocol: 'http', local_port: 65_536 }, 'local_port: must be a whole number from 1 to 65535'],
  [
    'open_tunnel',
    { protocol: 'http', local_port: 3000, ttl_secs: 59 },
    'ttl_secs: must be a whole number from 60 to 86400',
  ],
  [
    'open_tunnel',
    { protocol: 'http', local_port: 3000, remote_port: 1 },
    'remote_port: is for tcp and udp, not for http',
  ],
  [
    'open_tunnel',
    { protocol: 'tcp', local_port: 3000, subdomain: 'a' },
    'subdomain: is for http and https and tls, not for tcp',
  ],
  [
    'open_tunnel',
    { protocol: 'http', local_port: 3000, subdomain: 'a', domain: 'a.example.com' },
    'domain: cannot be combined with `subdomain`',
  ],
  ['open_tunnel', { protocol: 'udp', local_port: 3000, p2p_name: 'a' }, 'p2p_name: is for p2p, not for udp'],
  ['open_tunnel', { protocol: 'p2p', local_port: 3000 }, 'p2p_name: is required for p2p tunnels'],
  ['open_tunnel', { protocol: 'p2p', local_port: 3000, p2p_name: 'a', secret: 's' }, 'unknown argument "secret"'],
];

describe('tool arguments', () => {
  const host = new ScriptedHost();
  let served: Served;

  beforeAll(async () => {
    served = await serve(host);
  });
  afterAll(() => served.close());

  const refusalOf = async (name: string, given: Record<string, unknown>): Promise<string> => {
    const { isError, content } = await served.client.callTool({ name, arguments: given });
    expect(isError).toBe(true);
    return (content as { text: string }[])[0]?.text ?? '';
  };

  it('that are invalid are refused by name, and the host is not called', async () => {
    for (const [tool, given, reason] of REFUSED) {
      const line = await refusalOf(tool, given);
      expect(line).toBe(`API_BAD_REQUEST: ${reason} Next: Correct the arguments and call again.`);
    }
    expect([host.opened, host.waits, host.replayed]).toEqual([[], [], []]);
  });

  it('that are unknown are refused by every tool', async () => {
    for (const name of TOOL_NAMES) {
      expect(
        await refusalOf(name, { tunnel: 'web', request_id: 'req_1', protocol: 'http', local_port: 1, odd: 1 }),
      ).toMatch(/^API_BAD_REQUEST: unknown argument "\w+" Next: /);
    }
  });

  it('of any type never crash the server', async () => {
    const odd = [null, true, 0, -1, Number.MAX_SAFE_INTEGER, '', LONG, '\0', [], [[]], {}, { a: { b: LONG } }];
    for (const name of TOOL_NAMES) {
      for (const value of odd) {
        for (const field of ['tunnel', 'limit', 'protocol', 'days']) {
          const { content } = await served.client.callTool({ name, arguments: { [field]: value } });
          expect(JSON.stringify(content).length).toBeLessThan(5000);
        }
      }
    }
    expect((await served.client.callTool({ name: 'get_status', arguments: {} })).isError).toBeUndefined();
  });

  it('can be omitted where none is required, and an unknown tool is a protocol error', async () => {
    expect((await served.client.callTool({ name: 'list_tunnels' })).isError).toBeUndefined();
    for (const name of ['none', 'toString', '__proto__', LONG]) {
      const refusal = await served.client.callTool({ name }).catch((error: unknown) => error as Error);
      expect(refusal).toMatchObject({ code: -32_602 });
      expect((refusal as Error).message.length).toBeLessThan(200);
    }
  });

  it('of open_tunnel are passed to the host unchanged', async () => {
    const given = { protocol: 'p2p', local_port: 53, p2p_name: 'dns', p2p_service: 'udp', ttl_secs: 60 };
    await served.client.callTool({ name: 'open_tunnel', arguments: given });
    expect(host.opened).toEqual([given]);
  });
});
