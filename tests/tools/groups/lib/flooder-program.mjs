// Clients of a single account that send everything that costs an edge work, as fast as their sockets allow: health changes, both kinds of
// pings, registrations, invalid frames, and short connections. Started and stopped by flood.mjs.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { WebSocket } from 'ws';

const [port, token, webhook] = process.argv.slice(2);
/** Maximum bytes queued in this process. More frames wait at the edge. */
const QUEUE_BYTES = 256 * 1024;
const GROUPS = 10;
const keyHash = createHash('sha256').update('flood').digest('hex');
const sent = {};

const enter = async () => {
  const ws = new WebSocket(`ws://127.0.0.1:${port}/_control`);
  ws.on('error', () => {});
  await once(ws, 'open');
  const frames = [];
  ws.on('message', (/** @type {Buffer} */ data) => {
    if (frames.length < 1000) frames.push(JSON.parse(data.toString('utf8')));
  });
  ws.send(JSON.stringify({ type: 'Auth', versions: [1], token, agent: 'flood' }));
  while (!frames.some(({ type }) => type === 'AuthOk')) await once(ws, 'message');
  return { ws, frames };
};

/** Sends a kind of frame repeatedly, as long as the queue has room. */
const flood = (kind, ws, send) => {
  sent[kind] = 0;
  const more = () => {
    if (ws.readyState !== WebSocket.OPEN) return;
    for (let n = 0; n < 500 && ws.bufferedAmount < QUEUE_BYTES; n += 1) {
      send();
      sent[kind] += 1;
    }
    setTimeout(more, ws.bufferedAmount < QUEUE_BYTES ? 0 : 5);
  };
  more();
};

const flips = async () => {
  const { ws, frames } = await enter();
  for (let n = 0; n < GROUPS; n += 1) {
    const check = { type: 'tcp', alert_webhook: `${webhook}/${n}` };
    const group = { group: `flood-${n}`, group_key_hash: keyHash, health_check: check };
    ws.send(JSON.stringify({ type: 'RegisterTunnel', request_id: `r${n}`, name: 'f', protocol: 'http', ...group }));
  }
  const ids = () => frames.flatMap((frame) => (frame.type === 'TunnelRegistered' ? [frame.tunnel_id] : []));
  while (ids().length < GROUPS) await once(ws, 'message');
  const tunnels = ids();
  let at = 0;
  flood('flips', ws, () => {
    at += 1;
    const tunnel_id = tunnels[at % GROUPS];
    ws.send(JSON.stringify({ type: 'TunnelHealthy', tunnel_id }));
    ws.send(JSON.stringify({ type: 'TunnelUnhealthy', tunnel_id, reason: 'flood', consecutive_failures: 3 }));
  });
};

const simple = async (kind, sendOn) => {
  const { ws } = await enter();
  flood(kind, ws, () => sendOn(ws));
};

let id = 0;
await flips();
await simple('pings', (ws) => ws.send(JSON.stringify({ type: 'Ping', id: (id += 1) })));
await simple('websocket pings', (ws) => ws.ping());
await simple('odd frames', (ws) => ws.send('{}'));
await simple('registrations', (ws) => {
  id += 1;
  ws.send(JSON.stringify({ type: 'RegisterTunnel', request_id: `q${id}`, name: 'f', protocol: 'http' }));
});
process.send({ ready: true });
process.on('message', () => process.send({ sent }));
// Connections are opened one after the other, because the number of simultaneous connections has a separate limit.
for (sent['comings and goings'] = 0; ; sent['comings and goings'] += 1) {
  const { ws } = await enter();
  ws.send(JSON.stringify({ type: 'RegisterTunnel', request_id: 'r', name: 'f', protocol: 'http' }));
  await once(ws, 'message');
  ws.terminate();
}
