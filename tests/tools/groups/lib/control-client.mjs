// A bare client of the control plane: it registers members and reports their health, and carries no traffic.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { WebSocket } from 'ws';

const GROUP_KEY_HASH = createHash('sha256').update('a key that all members share').digest('hex');

export class ControlClient {
  #ws;
  #waiting = new Map();
  #sequence = 0;

  constructor(ws) {
    this.#ws = ws;
    ws.on('message', (data) => this.#heard(JSON.parse(data.toString('utf8'))));
    ws.on('error', () => {});
    ws.on('close', () => {
      for (const { reject } of this.#waiting.values()) reject(new Error('the edge closed the control connection'));
      this.#waiting.clear();
    });
  }

  static async enter(edge) {
    const ws = new WebSocket(`ws://127.0.0.1:${edge.controlPort}/_control`);
    await once(ws, 'open');
    const client = new ControlClient(ws);
    const welcome = client.#answer('welcome');
    client.send({ type: 'Auth', versions: [1], token: edge.token, agent: 'script' });
    await welcome;
    return client;
  }

  /** A member of the http group of that name; gives its tunnel id. */
  async join(group, fields = {}) {
    const requestId = this.#nextId('r');
    const answer = this.#answer(requestId);
    this.send({
      type: 'RegisterTunnel',
      request_id: requestId,
      name: 'member',
      protocol: 'http',
      group,
      group_key_hash: GROUP_KEY_HASH,
      ...fields,
    });
    return (await answer).tunnel_id;
  }

  async leave(tunnelId) {
    const requestId = this.#nextId('r');
    const answer = this.#answer(requestId);
    this.send({ type: 'UnregisterTunnel', request_id: requestId, tunnel_id: tunnelId });
    await answer;
  }

  healthy(tunnelId) {
    this.send({ type: 'TunnelHealthy', tunnel_id: tunnelId });
  }

  unhealthy(tunnelId, reason = 'connection refused', consecutiveFailures = 3) {
    this.send({
      type: 'TunnelUnhealthy',
      tunnel_id: tunnelId,
      reason,
      consecutive_failures: consecutiveFailures,
    });
  }

  /** Once it is answered, everything sent before has been handled. Gives the milliseconds of the round trip. */
  async ping() {
    this.#sequence += 1;
    const id = this.#sequence;
    const answer = this.#answer(`ping ${id}`);
    const begun = performance.now();
    this.send({ type: 'Ping', id });
    await answer;
    return performance.now() - begun;
  }

  send(message) {
    this.#ws.send(JSON.stringify(message));
  }

  /** On purpose: nothing is held for it. */
  async close() {
    if (this.#ws.readyState !== WebSocket.OPEN) return;
    const closed = once(this.#ws, 'close');
    this.send({ type: 'ShuttingDown', reason: 'the script is done', drain_secs: 0 });
    this.#ws.close(1000);
    await closed;
  }

  /** As a machine that vanishes from the network with its sockets. */
  cut() {
    this.#ws.terminate();
  }

  #nextId(prefix) {
    this.#sequence += 1;
    return `${prefix}${this.#sequence}`;
  }

  #answer(key) {
    return new Promise((resolve, reject) => {
      this.#waiting.set(key, { resolve, reject });
    });
  }

  #heard(message) {
    switch (message.type) {
      case 'Ping':
        return this.send({ type: 'Pong', id: message.id });
      case 'AuthOk':
        return this.#settle('welcome', message);
      case 'Pong':
        return this.#settle(`ping ${message.id}`, message);
      case 'TunnelRegistered':
      case 'TunnelUnregistered':
        return this.#settle(message.request_id, message);
      case 'AuthError':
        return this.#refuse('welcome', message);
      case 'TunnelError':
        return this.#refuse(message.request_id, message);
      default:
        return undefined;
    }
  }

  #settle(key, message) {
    this.#waiting.get(key)?.resolve(message);
    this.#waiting.delete(key);
  }

  #refuse(key, { code, message }) {
    this.#waiting.get(key)?.reject(new Error(`${code}: ${message}`));
    this.#waiting.delete(key);
  }
}
