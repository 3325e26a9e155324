// One call of each kind through a tunnel; prints `NAME ok` or `NAME what went wrong`. Usage: grpc-client.mjs HOST:PORT CA_FILE
import { readFileSync } from 'node:fs';
import { credentials, Metadata, makeClientConstructor } from '@grpc/grpc-js';
import { ECHO } from './grpc-echo.mjs';

const [authority = '', caFile = ''] = process.argv.slice(2);
const port = authority.split(':')[1];
const Client = makeClientConstructor(ECHO, 'echo.Echo');
// The name of the tunnel is the authority; the certificate is for localhost, too, which libraries verify without a wildcard.
const client = new Client(`127.0.0.1:${port}`, credentials.createSsl(readFileSync(caFile)), {
  'grpc.ssl_target_name_override': 'localhost',
  'grpc.default_authority': authority,
});

const expectSame = (got, wanted) => {
  if (JSON.stringify(got) !== JSON.stringify(wanted)) throw new Error(`got ${JSON.stringify(got)}`);
};

const unary = () =>
  new Promise((resolve, reject) => {
    const sent = new Metadata();
    sent.set('x-sent', 'metadata');
    let answer;
    const call = client.unary({ text: 'hello' }, sent, (error, value) => {
      answer = value;
      if (error) reject(new Error(error.details));
    });
    call.on('status', ({ metadata }) => resolve([answer, metadata.get('x-seen')]));
  });

const failing = () =>
  new Promise((resolve) => {
    client.unary({ text: 'fail' }, (error) => resolve([error?.code, error?.details]));
  });

const download = async () => {
  const seen = [];
  for await (const { index } of client.download({ count: 1000 })) seen.push(index);
  return [seen.length, seen.every((index, at) => index === at)];
};

const upload = () =>
  new Promise((resolve, reject) => {
    const call = client.upload((error, value) => (error ? reject(new Error(error.details)) : resolve(value)));
    for (let index = 0; index < 100; index += 1) call.write({ text: 'x'.repeat(10_000) });
    call.end();
  });

/** The next word is sent when the last one has come back: nothing may be held back on the way. */
const talk = () =>
  new Promise((resolve, reject) => {
    const call = client.talk();
    const heard = [];
    call.on('data', ({ text }) => {
      heard.push(text);
      if (heard.length < 20) call.write({ text: String(heard.length) });
      else call.end();
    });
    call.on('end', () => resolve([heard.length, heard[19]]));
    call.on('error', reject);
    call.write({ text: '0' });
  });

const tries = {
  unary: async () => expectSame(await unary(), [{ text: 'hello' }, ['metadata']]),
  'error status': async () => expectSame(await failing(), [9, 'as you asked']),
  'server streaming': async () => expectSame(await download(), [1000, true]),
  'client streaming': async () => expectSame(await upload(), { bytes: 1_000_000 }),
  'both streaming': async () => expectSame(await talk(), [20, 'echo 19']),
  '100 at once': async () => {
    const all = await Promise.all(Array.from({ length: 100 }, unary));
    expectSame(all.length, 100);
  },
};

for (const [name, attempt] of Object.entries(tries)) {
  try {
    await attempt();
    console.log(`${name} ok`);
  } catch (error) {
    console.log(`${name} ${error.message}`);
  }
}
client.close();
