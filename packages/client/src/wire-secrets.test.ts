// Reads all bytes sent by a client, and finds no group keys, p2p secrets, passwords or tokens.
import { createHash } from 'node:crypto';
import { connect as dial } from 'node:net';
import { Secret } from '@tunnel/runtime';
import { eventually, startTcpServer, type TcpServer } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Client, connect } from './client.ts';
import { ScriptedEdge } from './scripted-edge.fixture.ts';

const SECRETS = {
  groupKey: 'planted-group-key-918273645',
  fileKey: 'planted-second-key-918273645',
  p2pSecret: 'planted-p2p-secret-918273645',
  peerSecret: 'planted-peer-secret-918273645',
  password: 'planted-password-918273645',
  token: 'planted-token-918273645-long-enough',
};

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

let edge: ScriptedEdge;
let relay: TcpServer;
let client: Client;
/** Bytes sent by the client, as a list of chunks per connection. */
let sent: Buffer[][];

beforeEach(async () => {
  edge = await new ScriptedEdge().listen();
  sent = [];
  const port = Number(edge.address.split(':').at(-1));
  relay = await startTcpServer((visitor) => {
    const target = dial(port, '127.0.0.1');
    const chunks: Buffer[] = [];
    sent.push(chunks);
    visitor.on('data', (chunk: Buffer) => chunks.push(chunk));
    visitor.on('error', () => target.destroy()).pipe(target);
    target.on('error', () => visitor.destroy()).pipe(visitor);
  });
  client = await connect({ server: `127.0.0.1:${relay.port}`, token: 'tnl_test', random: () => -1 });
});
afterEach(async () => {
  await client.close();
  await relay.close();
  await edge.close();
});

/** Returns the unmasked payloads of WebSocket frames from a client. */
const unmasked = (bytes: Buffer): Buffer[] => {
  const payloads: Buffer[] = [];
  for (let at = 0; at + 6 <= bytes.length; ) {
    const short = bytes.readUInt8(at + 1) & 0x7f;
    const extra = { 126: 2, 127: 8 }[short] ?? 0;
    const length =
      extra === 0 ? short : Number(extra === 2 ? bytes.readUInt16BE(at + 2) : bytes.readBigUInt64BE(at + 2));
    const mask = at + 2 + extra;
    const payload = bytes.subarray(mask + 4, mask + 4 + length);
    payloads.push(Buffer.from(payload.map((byte, index) => byte ^ bytes.readUInt8(mask + (index % 4)))));
    at = mask + 4 + length;
  }
  return payloads;
};

/** Returns all bytes sent by the client as text: raw, and with unmasked WebSocket payloads. */
const wire = (): string =>
  sent
    .map((chunks) => {
      const bytes = Buffer.concat(chunks);
      const head = bytes.indexOf('\r\n\r\n');
      return Buffer.concat([bytes, ...(head < 0 ? [] : unmasked(bytes.subarray(head + 4)))]).toString('latin1');
    })
    .join('\n');

const policy = [
  { auth: { basic: { users: { anna: SECRETS.password } }, tokens: [{ name: 'ci', token: SECRETS.token }] } },
];

it('no group key, p2p secret, password or token leaves the client, however it was passed in', async () => {
  await client.open({ protocol: 'http', localPort: 3000, group: 'shop', groupKey: SECRETS.groupKey, policy });
  await client.open({
    proto: 'tcp',
    name: 'db',
    local_port: 5432,
    group: 'db',
    group_key: new Secret(SECRETS.fileKey),
  });
  const published = await client.open({ protocol: 'p2p', p2pName: 'office', secret: SECRETS.p2pSecret, localPort: 22 });
  const joining = client.connectPeer({ p2pName: 'other', secret: SECRETS.peerSecret }).catch(() => null);
  await eventually(() => expect(edge.session.all('ConnectPeer')).toHaveLength(1));
  const guarded = client.find('http-3000');
  await guarded?.update({ policy: [...policy, { deny: true }] });
  await published.retarget({ localPort: 23 });
  // After a reconnect the client registers every tunnel again.
  edge.session.cut();
  await eventually(() => expect(edge.sessions).toHaveLength(2));
  await eventually(() => expect(edge.session.all('RegisterTunnel')).toHaveLength(3));

  // The hashes of the secrets must be found: proof that the recorded bytes are readable.
  for (const secret of [SECRETS.groupKey, SECRETS.fileKey, SECRETS.p2pSecret, SECRETS.peerSecret, SECRETS.token]) {
    expect(wire()).toContain(sha256(secret));
  }
  for (const secret of Object.values(SECRETS)) {
    const bytes = Buffer.from(secret);
    for (const form of [secret, bytes.toString('hex'), bytes.toString('base64').replaceAll('=', '')]) {
      expect(wire()).not.toContain(form);
    }
  }
  await client.close();
  await joining;
});
