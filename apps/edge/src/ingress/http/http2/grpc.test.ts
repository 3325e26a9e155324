// gRPC with its official library, end to end: TLS and HTTP/2 to the edge, unencrypted HTTP/2 to the service.
import {
  Client,
  credentials,
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import { eventually, testCertificate } from '@tunnel/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type HttpsStand, startHttpsStand } from '../https.fixture.ts';

const text = { to: (value: string): Buffer => Buffer.from(value), from: (bytes: Buffer): string => bytes.toString() };
const method = (path: string, requestStream: boolean, responseStream: boolean) => ({
  path,
  requestStream,
  responseStream,
  requestSerialize: text.to,
  requestDeserialize: text.from,
  responseSerialize: text.to,
  responseDeserialize: text.from,
});
const SERVICE = {
  unary: method('/test.Echo/Unary', false, false),
  fail: method('/test.Echo/Fail', false, false),
  gather: method('/test.Echo/Gather', true, false),
  count: method('/test.Echo/Count', false, true),
  chat: method('/test.Echo/Chat', true, true),
};

let server: Server;
let stand: HttpsStand;
let client: Client;
let cancelled = false;

const HANDLERS = {
  unary: (call: ServerUnaryCall<string, string>, answer: sendUnaryData<string>): void => {
    const trailer = new Metadata();
    trailer.set('x-seen', String(call.metadata.get('x-sent')[0]));
    trailer.set('x-raw-bin', Buffer.from([0, 255, 1]));
    answer(null, `echo ${call.request}`, trailer);
  },
  // A failed call: the response has trailers only, without a separate head or a message.
  fail: (_call: ServerUnaryCall<string, string>, answer: sendUnaryData<string>): void =>
    answer({ code: status.NOT_FOUND, details: 'nothing here, caf\u00e9' }),
  gather: (call: ServerReadableStream<string, string>, answer: sendUnaryData<string>): void => {
    const parts: string[] = [];
    call.on('data', (part: string) => parts.push(part));
    call.on('end', () => answer(null, parts.join('+')));
  },
  count: (call: ServerWritableStream<string, string>): void => {
    for (let at = 0; at < Number(call.request); at += 1) call.write(String(at));
    call.end();
  },
  chat: (call: ServerDuplexStream<string, string>): void => {
    call.on('data', (part: string) => call.write(`re: ${part}`));
    call.on('end', () => call.end());
    call.on('cancelled', () => {
      cancelled = true;
    });
  },
};

beforeAll(async () => {
  server = new Server();
  server.addService(SERVICE, HANDLERS);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  stand = await startHttpsStand(port, { http: { localProtocol: 'h2c' } });
  const trust = credentials.createSsl(Buffer.from(testCertificate().cert));
  const options = { 'grpc.default_authority': 'web.localhost', 'grpc.ssl_target_name_override': 'localhost' };
  client = new Client(`127.0.0.1:${stand.port.address.port}`, trust, options);
});
afterAll(() => {
  client.close();
  stand.stop();
  server.forceShutdown();
});

it('gRPC unary calls carry metadata in both directions', async () => {
  const metadata = new Metadata();
  metadata.set('x-sent', 'there');
  let trailer: Metadata | undefined;
  const answer = await new Promise((resolve, reject) => {
    const call = client.makeUnaryRequest(SERVICE.unary.path, text.to, text.from, 'hi', metadata, (error, value) =>
      error === null ? resolve(value) : reject(error),
    );
    call.on('status', (given) => {
      trailer = given.metadata;
    });
  });
  expect(answer).toBe('echo hi');
  await eventually(() => expect(trailer?.get('x-seen')).toEqual(['there']));
  expect(trailer?.get('x-raw-bin')).toEqual([Buffer.from([0, 255, 1])]);
});

it('failed gRPC calls keep their status code and text', async () => {
  const failure = await new Promise((resolve) => {
    client.makeUnaryRequest(SERVICE.fail.path, text.to, text.from, 'hi', resolve);
  });
  expect(failure).toMatchObject({ code: status.NOT_FOUND, details: 'nothing here, caf\u00e9' });
  const unknown = await new Promise((resolve) => {
    client.makeUnaryRequest('/test.Echo/None', text.to, text.from, 'hi', resolve);
  });
  expect(unknown).toMatchObject({ code: status.UNIMPLEMENTED });
});

it('a gRPC client stream reaches the service whole', async () => {
  const answer = await new Promise((resolve, reject) => {
    const call = client.makeClientStreamRequest(SERVICE.gather.path, text.to, text.from, (error, value) =>
      error === null ? resolve(value) : reject(error),
    );
    for (const part of ['a', 'b', 'c'.repeat(300_000)]) call.write(part);
    call.end();
  });
  expect(answer).toBe(`a+b+${'c'.repeat(300_000)}`);
});

it('a gRPC server stream of 1000 messages reaches the client whole', async () => {
  const call = client.makeServerStreamRequest(SERVICE.count.path, text.to, text.from, '1000');
  const parts: string[] = [];
  for await (const part of call) parts.push(String(part));
  expect([parts.length, parts.at(-1)]).toEqual([1000, '999']);
});

it('a gRPC bidirectional stream delivers each message at once, and a cancel reaches the service', async () => {
  const call = client.makeBidiStreamRequest(SERVICE.chat.path, text.to, text.from);
  call.on('error', () => {});
  for (const part of ['one', 'two', 'three']) {
    call.write(part);
    const answer = await new Promise((resolve) => {
      call.once('data', resolve);
    });
    expect(answer).toBe(`re: ${part}`);
  }
  call.cancel();
  await eventually(() => expect(cancelled).toBe(true));
});

it('300 simultaneous gRPC calls share at most 4 connections to the service', async () => {
  const answers = await Promise.all(
    Array.from(
      { length: 300 },
      (_, at) =>
        new Promise((resolve, reject) => {
          client.makeUnaryRequest(SERVICE.unary.path, text.to, text.from, String(at), (error, value) =>
            error === null ? resolve(value) : reject(error),
          );
        }),
    ),
  );
  expect(answers).toEqual(Array.from({ length: 300 }, (_, at) => `echo ${at}`));
  expect(stand.http.dials).toBeLessThanOrEqual(4);
  expect(stand.http.tunnel.counters.openConnections).toBe(1);
});
