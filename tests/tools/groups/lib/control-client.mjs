// A minimal control client that registers members and reports their health, but carries no traffic.
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

  /** Registers a member of the http group and returns its tunnel id. */
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

  /** Sends a ping and returns the round trip in milliseconds. By the answer, the edge has handled all frames sent before. */
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

  /** Closes the session deliberately, so that the edge holds nothing for its return. */
  async close() {
    if (this.#ws.readyState !== WebSocket.OPEN) return;
    const closed = once(this.#ws, 'close');
    this.send({ type: 'ShuttingDown', reason: 'the script is done', drain_secs: 0 });
    this.#ws.close(1000);
    await closed;
  }

  /** Drops the connection, like a machine that disappears from the network. */
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
