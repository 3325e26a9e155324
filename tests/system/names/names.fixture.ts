// Helpers for tests of persistent names: tenants with a key and a bare control connection, their reservations, and visitors by name.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { ApiError } from '@tunnel/contract';
import { type ControlMessage, type ControlMessageInput, encodeControl, PROTOCOL_VERSION } from '@tunnel/protocol';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { WebSocket } from 'ws';
import type { Harness } from '../harness.fixture.ts';
import { type Answer, askHttp } from '../http-tunnels.fixture.ts';
import { Person, type Reply } from '../platform-test.fixture.ts';
import type { Stack } from '../stack.fixture.ts';

export const SOON = { timeoutMs: 30_000 };

/** Plan with room for many tunnels and reservations per account. */
export const ROOMY_PLAN = '[platform.plans.free]\ntunnel_limit = 1000\nreserved_limit = 1000';

export const keyHash = (key: string): string => createHash('sha256').update(key).digest('hex');

let made = 0;
/** Returns a name that is unique in the test run. */
export const freshName = (stem = 'shop'): string => {
  made += 1;
  return `${stem}-${process.pid}-${made}`;
};

export interface Reservation {
  readonly id: string;
  readonly kind: string;
  readonly label: string;
  readonly region_id: string | null;
  readonly state: string;
  readonly public_address: string;
  readonly active_tunnels: number;
  readonly created_at: string;
  readonly last_used_at: string | null;
  readonly expires_at: string | null;
}

interface Wanted {
  readonly kind: string;
  readonly label?: string;
  readonly region_id?: string;
}

/** A person with an account and a key, who can connect to any edge of the platform. */
export class Tenant {
  readonly person: Person;
  readonly key: string;

  constructor(person: Person, key: string) {
    this.person = person;
    this.key = key;
  }

  static async signUp(stack: Stack, name?: string): Promise<Tenant> {
    const person = await Person.signUp(stack, name);
    return new Tenant(person, (await person.newKey()).token);
  }

  reservations(): Promise<Reservation[]> {
    return this.person.get('/reservations');
  }

  async reservation(label: string): Promise<Reservation | undefined> {
    return (await this.reservations()).find((one) => one.label === label);
  }

  reserve(wanted: Wanted): Promise<Reply<Reservation & ApiError>> {
    return this.person.call('/reservations', { method: 'POST', body: wanted });
  }

  release(id: string): Promise<Reply<ApiError | null>> {
    return this.person.call(`/reservations/${id}`, { method: 'DELETE' });
  }

  enter(harness: Harness, edge: Pick<Stack, 'control'>, resume?: ResumeSecret): Promise<Client> {
    return Client.enter(harness, edge, this.key, resume);
  }

  /** Connects a client for a single registration, and disconnects it. Returns `ok LABEL`, or code and message of the refusal. */
  async ask(harness: Harness, edge: Pick<Stack, 'control'>, request: Request): Promise<string> {
    const client = await this.enter(harness, edge);
    const said = await client.ask(request);
    await client.leave();
    return said;
  }
}

type Frame = { readonly type: string } & Readonly<Record<string, unknown>>;
type Request = Omit<Partial<Extract<ControlMessageInput, { type: 'RegisterTunnel' }>>, 'protocol'> & {
  readonly protocol?: string;
};

export interface ResumeSecret {
  readonly session_id: string;
  readonly secret: string;
}

/** A bare control connection without a local service, for tests of admission rather than traffic. */
export class Client {
  readonly frames: Frame[] = [];
  readonly #ws: WebSocket;
  #asked = 0;

  constructor(ws: WebSocket) {
    this.#ws = ws;
    ws.on('error', () => {});
    ws.on('message', (data) => {
      const frame = JSON.parse((data as Buffer).toString('utf8')) as Frame;
      if (frame.type === 'Ping') this.#send({ type: 'Pong', id: Number(frame['id']) });
      else this.frames.push(frame);
    });
  }

  static async enter(
    harness: Harness,
    edge: Pick<Stack, 'control'>,
    token: string,
    resume?: ResumeSecret,
  ): Promise<Client> {
    const ws = new WebSocket(`ws://${edge.control}/_control`);
    const client = new Client(ws);
    await once(ws, 'open');
    harness.use({ close: async () => ws.terminate() });
    client.#send({ type: 'Auth', versions: [PROTOCOL_VERSION], token, agent: 'raw', ...(resume ? { resume } : {}) });
    const answer = await client.#heard(({ type }) => type === 'AuthOk' || type === 'AuthError');
    if (answer.type === 'AuthError') throw new Error(`not let in: ${String(answer['message'])}`);
    return client;
  }

  get resume(): ResumeSecret {
    const welcome = this.frames.find(({ type }) => type === 'AuthOk');
    return { session_id: String(welcome?.['session_id']), secret: String(welcome?.['resume_secret']) };
  }

  /** Registers a tunnel, with HTTP as default protocol. Returns `ok LABEL`, or `CODE: text`. */
  async ask(request: Request): Promise<string> {
    const answer = await this.answer(request);
    const [label, code, message] = [answer['label'], answer['code'], answer['message']].map(String);
    return answer.type === 'TunnelRegistered' ? `ok ${label}` : `${code}: ${message}`;
  }

  async answer(request: Request): Promise<Frame> {
    this.#asked += 1;
    const request_id = `r${this.#asked}`;
    const whole = { type: 'RegisterTunnel', name: 'raw', protocol: 'http', ...request, request_id };
    this.#send(whole as ControlMessageInput);
    return this.#heard((frame) => frame['request_id'] === request_id);
  }

  /** Unregisters all tunnels and disconnects, so that the names and ports are released at once. */
  async leave(): Promise<void> {
    for (const { type, tunnel_id } of this.frames) {
      if (type !== 'TunnelRegistered') continue;
      this.#asked += 1;
      const request_id = `r${this.#asked}`;
      this.#send({ type: 'UnregisterTunnel', request_id, tunnel_id: String(tunnel_id) });
      await this.#heard((frame) => frame['request_id'] === request_id);
    }
    await this.cut();
  }

  /** Cuts the connection without unregistering, like a machine that loses power. */
  async cut(): Promise<void> {
    const closed = once(this.#ws, 'close');
    this.#ws.terminate();
    await closed;
  }

  #send(message: ControlMessageInput): void {
    this.#ws.send(encodeControl(message as ControlMessage));
  }

  #heard(fits: (frame: Frame) => boolean): Promise<Frame> {
    return eventually(
      () => {
        const found = this.frames.find(fits);
        if (found === undefined) throw new Error(`not among ${this.frames.map(({ type }) => type).join(' ')}`);
        return found;
      },
      { ...SOON, intervalMs: 2 },
    );
  }
}

/** Requests a name below the domain of a stack over plain HTTP. */
export const visitName = (stack: Stack, name: string, path = '/'): Promise<Answer> => {
  const { port } = new URL(stack.run.http_url);
  const headers = { accept: 'application/json' };
  return askHttp({ host: `${name}.localhost:${port}`, port: Number(port) }, { path, headers });
};

/** Requests a name, and returns status and error code of the edge, or `served`. */
export const fateOfVisit = async (stack: Stack, name: string): Promise<string> => {
  const { status, headers } = await visitName(stack, name);
  return `${status} ${String(headers['x-tunnel-error'] ?? 'served')}`;
};

export const inUse = (name: string): string => `TUNNEL_SUBDOMAIN_IN_USE: subdomain '${name}' is already in use`;
export const portInUse = (port: number | string): string => `TUNNEL_PORT_IN_USE: port ${port} is already in use`;

export const reserved = async (tenant: Tenant, wanted: Wanted): Promise<Reservation> => {
  const { status, body } = await tenant.reserve(wanted);
  expect([status, body]).toEqual([201, expect.objectContaining({ state: 'reserved' })]);
  return body;
};
