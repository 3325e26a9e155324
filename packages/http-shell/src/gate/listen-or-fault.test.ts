import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { listenOrFault } from './listen-or-fault.ts';

const any = { host: '127.0.0.1', port: 0, key: '[server] api_port' };

describe('a listener', () => {
  it('reports CONFIG_PORT_TAKEN for a port in use', async () => {
    const first = createServer();
    const { port } = await listenOrFault(first, any);
    await expect(listenOrFault(createServer(), { ...any, port })).rejects.toMatchObject({ code: 'CONFIG_PORT_TAKEN' });
    first.close();
  });

  it('reports CONFIG_PORT_DENIED with the reason for an address of another machine', async () => {
    await expect(listenOrFault(createServer(), { ...any, host: '203.0.113.9' })).rejects.toMatchObject({
      code: 'CONFIG_PORT_DENIED',
      message: expect.stringContaining('this machine does not have that address'),
    });
  });

  it('keeps listening after a failed accept', async () => {
    const server = createServer();
    await listenOrFault(server, any);
    expect(() => server.emit('error', new Error('accept ENOBUFS'))).not.toThrow();
    expect(server.listening).toBe(true);
    server.close();
  });
});
