// gRPC with a token in its metadata, and without one; prints `NAME ok` or `NAME what went wrong`. Usage: grpc-guest.mjs HOST:PORT CA_FILE TOKEN_FILE
import { readFileSync } from 'node:fs';
import { credentials, Metadata, makeClientConstructor, status } from '@grpc/grpc-js';
import { ECHO } from '../../http/grpc-echo.mjs';

const [authority = '', caFile = '', tokenFile = ''] = process.argv.slice(2);
const Client = makeClientConstructor(ECHO, 'echo.Echo');
// The name of the tunnel is the authority; the certificate is for localhost, too, which libraries verify without a wildcard.
const client = new Client(`127.0.0.1:${authority.split(':')[1]}`, credentials.createSsl(readFileSync(caFile)), {
  'grpc.ssl_target_name_override': 'localhost',
  'grpc.default_authority': authority,
});

const metadataOf = (token) => {
  const metadata = new Metadata();
  if (token !== null) metadata.set('x-tunnel-token', token);
  return metadata;
};

/** What it was answered with, or the code of its refusal; and what the service says that it was sent. */
const call = (token) =>
  new Promise((resolve) => {
    let answer;
    const unary = client.unary({ text: 'hello' }, metadataOf(token), (error, value) => {
      answer = error?.code ?? value.text;
    });
    unary.on('status', ({ metadata }) => resolve([answer, metadata.get('x-seen')[0] ?? null]));
  });

const talk = (token) =>
  new Promise((resolve, reject) => {
    const both = client.talk(metadataOf(token));
    const heard = [];
    both.on('data', ({ text }) => {
      heard.push(text);
      if (heard.length < 20) both.write({ text: String(heard.length) });
      else both.end();
    });
    both.on('end', () => resolve(heard.length));
    both.on('error', reject);
    both.write({ text: '0' });
  });

const TOKEN = readFileSync(tokenFile, 'utf8').trim();

const tries = {
  'a token in the metadata, and the service hears who it is': async () => {
    const [answer, seen] = await call(TOKEN);
    return answer === 'hello' && seen !== null && seen !== '' ? null : `${answer}, ${seen}`;
  },
  'words both ways with it': async () => ((await talk(TOKEN)) === 20 ? null : 'not all words came'),
  'without one it is UNAUTHENTICATED': async () => {
    const answers = [(await call(null))[0], (await call('another-token-of-some-length'))[0]];
    return answers.every((answer) => answer === status.UNAUTHENTICATED) ? null : answers.join(', ');
  },
};

for (const [name, attempt] of Object.entries(tries)) {
  const wrong = await attempt().catch((error) => error.message);
  console.log(`${name} ${wrong ?? 'ok'}`);
}
client.close();
