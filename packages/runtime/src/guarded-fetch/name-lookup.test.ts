import { createSocket, type Socket } from 'node:dgram';
import { afterEach, expect, it } from 'vitest';
import { createNameLookup } from './name-lookup.ts';

const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.close();
});

const A = 1;
const AAAA = 28;
type Answer = readonly Buffer[] | 'no such name' | 'silence';

/** Starts a name server with the same answer for every name. */
const startNameServer = async (answerTo: (type: number) => Answer): Promise<string> => {
  const socket = createSocket('udp4');
  sockets.push(socket);
  socket.on('message', (query, from) => {
    const type = query.readUInt16BE(query.indexOf(0, 12) + 1);
    const answer = answerTo(type);
    if (answer !== 'silence') socket.send(replyTo(query, type, answer), from.port, from.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  return `127.0.0.1:${socket.address().port}`;
};

const replyTo = (query: Buffer, type: number, answer: readonly Buffer[] | 'no such name'): Buffer => {
  const questionEnd = query.indexOf(0, 12) + 5;
  const records = answer === 'no such name' ? [] : answer;
  const head = Buffer.from(query.subarray(0, 12));
  head.writeUInt16BE(answer === 'no such name' ? 0x8183 : 0x8180, 2);
  head.writeUInt16BE(records.length, 6);
  // The authority and additional records of the query are not copied into the response.
  head.writeUInt32BE(0, 8);
  const encoded = records.map((data) => {
    const record = Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 0, 0, data.length]);
    return Buffer.concat([record, data]);
  });
  return Buffer.concat([head, query.subarray(12, questionEnd), ...encoded]);
};

const forever = (): AbortSignal => new AbortController().signal;
const untold = (): Promise<never> => Promise.reject(new Error('the system was asked'));

it('a name lookup returns the addresses of both families', async () => {
  const server = await startNameServer((type) =>
    type === A
      ? [Buffer.from([10, 0, 0, 5]), Buffer.from([8, 8, 8, 8])]
      : [Buffer.from(`${'fd00'.padEnd(31, '0')}1`, 'hex')],
  );
  const lookup = createNameLookup({ servers: [server], askSystem: untold });
  expect(await lookup('hooks.example', forever())).toEqual(['10.0.0.5', '8.8.8.8', 'fd00::1']);
});

it('a name lookup succeeds when only one family exists', async () => {
  const server = await startNameServer((type) => (type === AAAA ? 'no such name' : [Buffer.from([8, 8, 8, 8])]));
  const lookup = createNameLookup({ servers: [server], askSystem: untold });
  expect(await lookup('hooks.example.', forever())).toEqual(['8.8.8.8']);
});

it('a name lookup is canceled at the deadline when the name server is silent', async () => {
  const server = await startNameServer(() => 'silence');
  const lookup = createNameLookup({ servers: [server], askSystem: untold });
  const deadline = new AbortController();
  setImmediate(() => deadline.abort());
  await expect(lookup('hooks.example', deadline.signal)).rejects.toMatchObject({ code: 'ECANCELLED' });
});

it('names that DNS does not know are looked up by the system, one at a time', async () => {
  const server = await startNameServer(() => 'no such name');
  const asked: string[] = [];
  const answers: ((addresses: string[]) => void)[] = [];
  const askSystem = (name: string): Promise<readonly string[]> => {
    asked.push(name);
    return new Promise((resolve) => answers.push(resolve));
  };
  const lookup = createNameLookup({ servers: [server], askSystem });
  const gaveUp = new AbortController();
  const first = lookup('receiver', forever());
  await expect.poll(() => asked).toEqual(['receiver']);
  const second = lookup('impatient', gaveUp.signal);
  const third = lookup('other', forever());
  // Once this later lookup has finished, the DNS queries of the earlier lookups have been answered too.
  await createNameLookup({ servers: [server], askSystem: () => Promise.resolve([]) })('later', forever());
  gaveUp.abort();
  answers[0]?.(['10.0.0.9']);
  expect(await first).toEqual(['10.0.0.9']);
  await expect.poll(() => asked).toEqual(['receiver', 'other']);
  answers[1]?.(['10.0.0.10']);
  expect(await third).toEqual(['10.0.0.10']);
  await second.catch(() => {});
});

it.each(['localhost', 'localhost.', 'a.b.localhost'])('%s is this computer without a lookup', async (name) => {
  const lookup = createNameLookup({ servers: ['127.0.0.1:9'], askSystem: untold });
  expect(await lookup(name, forever())).toEqual(['127.0.0.1', '::1']);
});
