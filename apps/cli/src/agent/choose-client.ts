// Running clients of this user, and the selection of one client: by pid, by config file, or as the only running client.
import { realpathSync } from 'node:fs';
import { pathFrom } from '@tunnel/config/layers';
import { Fault } from '@tunnel/errors';
import { type Clock } from '@tunnel/runtime';
import { type Command, Option } from 'commander';
import type { Io } from '../io/io.ts';
import { type AgentCall, type AgentReply, askClient, followClient, NoAnswer } from './agent-client.ts';
import type { ClientStatus } from './answers.ts';
import { type FoundSocket, findSockets, removeStale } from './socket-folders.ts';

export interface ClientFlags {
  readonly client?: string;
}

export const addClientFlag = (command: Command): Command =>
  command.addOption(new Option('--client <pid|config>', 'Client to use, if several are running'));

export interface FoundClients {
  /** Running clients that responded, oldest first. */
  readonly clients: readonly FoundClient[];
  /** Pids of clients that accept connections on their socket but do not respond. */
  readonly silent: readonly number[];
}

/** Maximum tunnel names shown for a client in a list, enough to recognize the client. */
const NAMES_MAX = 3;

/** A running client that has responded to a status request. */
export class FoundClient {
  readonly status: ClientStatus;
  readonly #path: string;
  readonly #clock: Clock;

  constructor(path: string, status: ClientStatus, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
    this.status = status;
  }

  get pid(): number {
    return this.status.pid;
  }

  /** Short description of the client for a list of clients to choose from. */
  get text(): string {
    const { pid, config, tunnels } = this.status;
    const names = tunnels.slice(0, NAMES_MAX).map(({ name }) => name);
    const rest = tunnels.length > NAMES_MAX ? ['…'] : [];
    return `${pid} (${[...(config === null ? [] : [config]), ...names, ...rest].join(' ') || 'no tunnels'})`;
  }

  /** Calls the client. Rejects with the client's error, or with a Fault if the client has stopped. */
  async ask(call: AgentCall): Promise<AgentReply> {
    return askClient(this.#path, call, this.#clock).catch((error: unknown) => this.#fail(error));
  }

  /** Passes on lines from the client until the client ends or `signal` aborts. */
  async follow(call: AgentCall, onLine: (json: unknown) => void): Promise<void> {
    await followClient(this.#path, call, onLine, this.#clock).catch((error: unknown) => {
      if (call.signal?.aborted !== true) this.#fail(error);
    });
  }

  #fail(error: unknown): never {
    // The client has ended since it was found, for example because another command stopped it.
    if (error instanceof NoAnswer && error.isDead) {
      throw new Fault('CLIENT_NOT_RUNNING', {}, { message: `client ${this.pid} has stopped` });
    }
    if (error instanceof NoAnswer) throw new Fault('CLIENT_NO_ANSWER', { pid: this.pid, reason: error.message });
    throw error;
  }
}

export const findClients = async (io: Pick<Io, 'env' | 'home' | 'clock'>): Promise<FoundClients> => {
  const answers = await Promise.all(findSockets(io).map((socket) => lookAt(socket, io.clock)));
  const clients = answers.filter((answer): answer is FoundClient => answer instanceof FoundClient);
  const silent = answers.filter((answer): answer is number => typeof answer === 'number');
  return { clients: clients.sort((a, b) => a.status.since.localeCompare(b.status.since)), silent };
};

/**
 * Requests the status of the client behind a socket. Returns the pid if a process listens but does not identify itself as a client, and
 * null if the socket is dead.
 */
const lookAt = async (socket: FoundSocket, clock: Clock): Promise<FoundClient | number | null> => {
  try {
    const { json } = await askClient(socket.path, { path: '/status' }, clock);
    return new FoundClient(socket.path, json as ClientStatus, clock);
  } catch (error) {
    if (!(error instanceof NoAnswer && error.isDead)) return socket.pid;
    await removeStale(socket);
    return null;
  }
};

/** Returns the client selected by `--client`, or the only running client. Rejects with a Fault if no client matches or several do. */
export const chooseClient = async ({ client: wanted }: ClientFlags, io: Io): Promise<FoundClient> => {
  const { clients, silent } = await findClients(io);
  if (clients.length === 0) {
    const [pid] = silent;
    throw pid === undefined
      ? new Fault('CLIENT_NOT_RUNNING')
      : new Fault('CLIENT_NO_ANSWER', { pid, reason: 'no response in time' });
  }
  const meant = wanted === undefined ? clients : mostMeant(clients.filter((client) => isMeant(client, wanted, io)));
  const [only, ...more] = meant;
  if (only !== undefined && more.length === 0) return only;
  const list = (only === undefined ? clients : meant).map(({ text }) => text).join(', ');
  if (only !== undefined) throw new Fault('CLIENT_AMBIGUOUS', { count: meant.length, clients: list });
  throw new Fault('CLIENT_NOT_RUNNING', {}, { message: `no running client matches \`${wanted}\`; running: ${list}` });
};

/**
 * Narrows down clients with the same config file. A client that opens the file's tunnels is preferred to clients that only read the API
 * key from the file.
 */
const mostMeant = (clients: readonly FoundClient[]): readonly FoundClient[] => {
  const ofFile = clients.filter(({ status }) => status.tunnels.some(({ source }) => source === 'file'));
  return ofFile.length === 0 ? clients : ofFile;
};

const isMeant = ({ status }: FoundClient, wanted: string, io: Io): boolean =>
  /^\d+$/.test(wanted)
    ? status.pid === Number(wanted)
    : status.config !== null && real(status.config) === real(pathFrom(io.cwd, wanted, io.home));

/** Resolves symbolic links, so that different paths to the same file compare as equal. */
const real = (path: string): string => {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
};
