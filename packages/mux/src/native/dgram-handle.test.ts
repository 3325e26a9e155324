// The choice between the handle and the public methods of a dgram socket on the installed Node.js version. A change inside Node.js must fail
// these tests instead of raising the CPU cost unnoticed.
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { eventually } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Guarded } from '../loop/guard.ts';
import { DatagramSender, findSendRequests, receiveDatagrams } from './dgram-handle.ts';
import type { Binding } from './node-handles.ts';
import { allowStaticReads } from './node-internals.ts';

const real: Binding = (name) => (process as unknown as { binding: Binding }).binding(name);

let sockets: Socket[];
let abandoned: string[];
const owner: Guarded = { abandon: (error, where) => void abandoned.push(`${where}: ${(error as Error).message}`) };

beforeEach(() => {
  [sockets, abandoned] = [[], []];
});
afterEach(() => {
  allowStaticReads(true);
  for (const socket of sockets) socket.close();
});

const bound = async (): Promise<Socket> => {
  const socket = createSocket('udp4');
  sockets.push(socket);
  const listening = once(socket, 'listening');
  socket.bind(0, '127.0.0.1');
  await listening;
  return socket;
};

const connected = async (port: number): Promise<Socket> => {
  const socket = createSocket('udp4');
  sockets.push(socket);
  const connecting = once(socket, 'connect');
  socket.connect(port, '127.0.0.1');
  await connecting;
  return socket;
};

interface Inside {
  readonly handle: { send(request: { oncomplete(status: number): void }, list: Buffer[]): number; onmessage: unknown };
}
const insideOf = (socket: Socket): Inside => {
  const symbol = Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'state symbol');
  return (socket as unknown as Record<symbol, Inside>)[symbol as symbol] as Inside;
};

describe.each([
  ['handles', true],
  ['public methods', false],
])('datagrams through %s', (_name, isAllowed) => {
  beforeEach(() => allowStaticReads(isAllowed));

  it('arrive with the address of their sender', async () => {
    const receiver = await bound();
    const heard: string[] = [];
    receiveDatagrams(receiver, owner, 'test', (bytes, { address, port }) =>
      heard.push(`${String(bytes)} ${address}:${port}`),
    );
    const { port } = receiver.address();
    const [any, fixed] = [await bound(), await connected(port)];
    const publicSend = vi.spyOn(any, 'send');
    expect(new DatagramSender(any).send(Buffer.from('to any'), port, '127.0.0.1')).toBe(true);
    expect(new DatagramSender(fixed).send(Buffer.from('fixed'))).toBe(true);
    expect(new DatagramSender(fixed).send(Buffer.alloc(0))).toBe(true);
    const [a, b] = [any.address().port, fixed.address().port];
    // Without handles, the first address is looked up in a later turn.
    const all = [` 127.0.0.1:${b}`, `fixed 127.0.0.1:${b}`, `to any 127.0.0.1:${a}`];
    await eventually(() => expect(heard.toSorted()).toEqual(all));
    expect(publicSend.mock.calls.length).toBe(isAllowed ? 0 : 1);
    expect(receiver.listenerCount('message')).toBe(1);
  });

  it('are received from the first one on by a socket that is not bound yet', async () => {
    const socket = createSocket('udp4');
    sockets.push(socket);
    const heard: string[] = [];
    receiveDatagrams(socket, owner, 'test', (bytes) => heard.push(String(bytes)));
    const listening = once(socket, 'listening');
    socket.bind(0, '127.0.0.1');
    await listening;
    new DatagramSender(await connected(socket.address().port)).send(Buffer.from('first'));
    await eventually(() => expect(heard).toEqual(['first']));
  });

  it('cost only themselves when their receiver throws', async () => {
    const receiver = await bound();
    const heard: string[] = [];
    receiveDatagrams(receiver, owner, 'test', (bytes) => {
      if (String(bytes) === 'bad') throw new Error('mine');
      heard.push(String(bytes));
    });
    const sender = new DatagramSender(await connected(receiver.address().port));
    for (const text of ['bad', 'good']) sender.send(Buffer.from(text));
    await eventually(() => expect(heard).toEqual(['good']));
    expect(abandoned).toEqual(['test.message: mine']);
  });

  it('that the system rejects are reported in a later turn, and later datagrams are sent', async () => {
    const receiver = await bound();
    const heard: string[] = [];
    receiveDatagrams(receiver, owner, 'test', (bytes) => heard.push(String(bytes)));
    const codes: (string | undefined)[] = [];
    const onError = (error: Error): void => void codes.push((error as NodeJS.ErrnoException).code);
    const sender = new DatagramSender(await connected(receiver.address().port), onError);
    sender.send(Buffer.alloc(65_530));
    expect(codes).toEqual([]);
    await eventually(() => expect(codes).toEqual(['EMSGSIZE']));
    sender.send(Buffer.from('small'));
    await eventually(() => expect(heard).toEqual(['small']));
  });

  it('leave errors of the socket to its listeners', async () => {
    const gone = await bound();
    const { port } = gone.address();
    gone.close();
    sockets = sockets.filter((socket) => socket !== gone);
    const socket = await connected(port);
    const codes: (string | undefined)[] = [];
    socket.on('error', (error: NodeJS.ErrnoException) => codes.push(error.code));
    receiveDatagrams(socket, owner, 'test', () => {});
    new DatagramSender(socket).send(Buffer.from('hello'));
    await eventually(() => expect(codes).toEqual(['ECONNREFUSED']));
  });
});

it('a queued datagram keeps its memory and its request, and its error is reported', async () => {
  const socket = await connected(9);
  const codes: (string | undefined)[] = [];
  const sender = new DatagramSender(socket, (error) => codes.push((error as NodeJS.ErrnoException).code));
  const queued: { request: { oncomplete(status: number): void; list?: Buffer[] }; list: Buffer[] }[] = [];
  const send = vi.spyOn(insideOf(socket).handle, 'send').mockImplementation((request, list) => {
    queued.push({ request, list });
    return 0;
  });
  for (const text of ['one', 'two']) expect(sender.send(Buffer.from(text))).toBe(false);
  expect(sender.isBehind).toBe(true);
  expect(queued.map(({ request }) => request.list?.map(String))).toEqual([['one'], ['two']]);
  expect(queued[0]?.request).not.toBe(queued[1]?.request);
  queued[0]?.request.oncomplete(0);
  queued[1]?.request.oncomplete(-90);
  await eventually(() => expect(codes).toEqual(['EMSGSIZE']));
  send.mockReturnValue(4);
  expect(sender.send(Buffer.from('3rd'))).toBe(true);
  expect(sender.isBehind).toBe(false);
});

describe('findSendRequests', () => {
  it('finds send requests on tested Node.js versions, and returns null on a newer version', () => {
    expect(findSendRequests(real)).toBeTypeOf('function');
    expect(findSendRequests(real, '27.0.0')).toBeNull();
  });

  it('returns null without process bindings, or when they throw or lack the constructor', () => {
    expect(findSendRequests(undefined)).toBeNull();
    expect(findSendRequests(() => ({}))).toBeNull();
    const throws = (): never => {
      throw new Error('no bindings');
    };
    expect(findSendRequests(throws)).toBeNull();
  });
});
