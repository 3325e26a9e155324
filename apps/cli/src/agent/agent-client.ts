// Calls to running clients over their Unix sockets. Error responses of a client become faults.
import { type IncomingMessage, request } from 'node:http';
import { createInterface } from 'node:readline';
import { Fault, type FaultValues } from '@tunnel/errors';
import type { Clock } from '@tunnel/runtime';
import { CLI_LIMITS } from '../limits.ts';

/** Response timeout of calls that make the client wait for the edge. */
const AGENT_SLOW_ANSWER_TIMEOUT_MS = 40_000;
/** Maximum size of a client's response, enough for ten thousand tunnels. */
const AGENT_ANSWER_MAX_BYTES = 16 * 1024 * 1024;

export interface AgentCall {
  readonly method?: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly json?: object;
  /** True if the client waits for the edge before it responds. */
  readonly isSlow?: boolean;
  readonly signal?: AbortSignal;
}

export interface AgentReply {
  readonly status: number;
  readonly json: unknown;
}

/** The error of a call without a valid response: no client listens on the socket, or the listener does not speak the client's protocol. */
export class NoAnswer extends Error {
  /** True if no process listens on the socket any more. */
  readonly isDead: boolean;

  constructor(cause: unknown) {
    const { code, message } = cause as NodeJS.ErrnoException;
    super(message, { cause });
    this.isDead = code === 'ECONNREFUSED' || code === 'ENOENT';
  }
}

/** Error codes of a client that has reached its connection limit and closes new connections. A moment later the client has room again. */
const PASSING: ReadonlySet<string | undefined> = new Set(['ECONNRESET', 'EPIPE', 'EAGAIN']);
const TRIES = 25;
const TRY_EVERY_MS = 250;

/** Calls a client. Rejects with NoAnswer, or with the client's error as a Fault. */
export const askClient = async (socketPath: string, call: AgentCall, clock: Clock): Promise<AgentReply> => {
  const reply = await tryCall(socketPath, call, clock);
  if (reply.status < 400 || reply.status === 503) return reply;
  throw refusalOf(reply);
};

const tryCall = async (socketPath: string, call: AgentCall, clock: Clock): Promise<AgentReply> => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const response = await send(socketPath, call, clock);
      return { status: response.statusCode ?? 0, json: await readJson(response) };
    } catch (error) {
      // Only GET requests are retried, because they change nothing.
      const isPassing = PASSING.has((error as NodeJS.ErrnoException).code) && (call.method ?? 'GET') === 'GET';
      if (!isPassing || attempt === TRIES) throw new NoAnswer(error);
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, TRY_EVERY_MS));
    }
  }
};

/** Reads lines from a client as they arrive, until `signal` aborts or the client ends. */
export const followClient = async (
  socketPath: string,
  call: AgentCall,
  onLine: (json: unknown) => void,
  clock: Clock,
): Promise<void> => {
  const response = await send(socketPath, { ...call, isSlow: true }, clock).catch((error: unknown) => {
    throw new NoAnswer(error);
  });
  if (response.statusCode !== 200) {
    throw refusalOf({ status: response.statusCode ?? 0, json: await readJson(response) });
  }
  try {
    for await (const line of createInterface({ input: response })) if (line !== '') onLine(JSON.parse(line));
  } catch (error) {
    // A killed client resets the connection and sends no more lines, so a reset counts as a normal end.
    if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error;
  }
};

const send = (socketPath: string, call: AgentCall, clock: Clock): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const body = call.json === undefined ? '' : JSON.stringify(call.json);
    const timeout = call.isSlow === true ? AGENT_SLOW_ANSWER_TIMEOUT_MS : CLI_LIMITS.AGENT_ANSWER_TIMEOUT_MS;
    const sent = request({
      socketPath,
      path: call.path,
      method: call.method ?? 'GET',
      agent: false,
      headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
      ...(call.signal === undefined ? {} : { signal: call.signal }),
    });
    const late = clock.setTimeout(() => sent.destroy(new Error('no response in time')), timeout);
    sent.once('error', (error) => {
      late.cancel();
      reject(error);
    });
    sent.once('response', (response) => {
      late.cancel();
      resolve(response);
    });
    sent.end(body);
  });

const readJson = async (response: IncomingMessage): Promise<unknown> => {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > AGENT_ANSWER_MAX_BYTES) throw new Error('the response is too long');
    parts.push(part);
  }
  return JSON.parse(Buffer.concat(parts).toString('utf8')) as unknown;
};

const refusalOf = ({ status, json }: AgentReply): Fault => {
  const {
    code = '',
    error = `the client responded with HTTP ${status}`,
    values = {},
  } = json as Partial<{
    code: string;
    error: string;
    values: FaultValues;
  }>;
  return Fault.fromWire(code, error, values);
};
