import { describe, expect, it } from 'vitest';
import { scopesOfBody } from './request-scopes.ts';
import { SCOPE_OF_TOOL } from './scopes.ts';
import { TOOL_NAMES } from './tool-host.ts';

const call = (name: unknown): unknown => ({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name } });
const read = (uri: unknown): unknown => ({ jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri } });

describe('the scopes that a body needs', () => {
  it('are those of the tool', () => {
    for (const name of TOOL_NAMES) {
      const scope = SCOPE_OF_TOOL[name];
      expect(scopesOfBody(call(name))).toEqual(scope === undefined ? [] : [scope]);
    }
  });

  it('are those of the tool behind a resource', () => {
    expect(scopesOfBody(read('tunnel://tunnels'))).toEqual(['tunnels:read']);
    expect(scopesOfBody(read('tunnel://tunnels/tun_1'))).toEqual(['tunnels:read']);
    expect(scopesOfBody(read('tunnel://requests/tun_1/req_1'))).toEqual(['requests:read']);
    expect(scopesOfBody(read('tunnel://errors/INTERNAL'))).toEqual([]);
  });

  it('of several messages are all of theirs, each once', () => {
    expect(scopesOfBody([call('close_tunnel'), call('list_keys'), call('get_usage')])).toEqual([
      'tunnels:close',
      'tunnels:read',
    ]);
  });

  it('are none for anything else', () => {
    const odd = [
      null,
      undefined,
      'text',
      5,
      [],
      [null, 1],
      {},
      { method: 'tools/list' },
      { method: 'tools/call', params: null },
    ];
    for (const body of [
      ...odd,
      call('none'),
      call('__proto__'),
      call(5),
      call(undefined),
      read('file:///x'),
      read({}),
    ]) {
      expect(scopesOfBody(body)).toEqual([]);
    }
  });
});
