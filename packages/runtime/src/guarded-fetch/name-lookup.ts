// The addresses of a name in a stranger's URL, found so that a name server of theirs which hangs holds up nobody else.
import { lookup, Resolver } from 'node:dns/promises';
import { SerialQueue } from '../async/serial.ts';

/** wait for the first question to a name server; the second question waits twice as long */
const FETCH_DNS_TRY_MS = 1000;

/** Rejects, or settles late, as it likes; who asks has a deadline. */
export type NameLookup = (name: string, signal: AbortSignal) => Promise<readonly string[]>;

export interface NameLookupOptions {
  /** Name servers with their ports, instead of the system's. */
  readonly servers?: readonly string[];
  /** Finds what only the system knows: its hosts file, search domains. */
  readonly askSystem?: (name: string) => Promise<readonly string[]>;
}

const LOOPBACK = ['127.0.0.1', '::1'];
/** Not "there is no such name": nobody has said anything. */
const SILENCE = new Set(['ETIMEOUT', 'ECANCELLED']);

/**
 * dns.lookup takes one of two threads that the whole process has for names, and cannot be called off. So DNS is asked without
 * it, and the system only when DNS has said no: one name at a time, which leaves the other thread to the rest of the process.
 */
export const createNameLookup = (options: NameLookupOptions = {}): NameLookup => {
  const askSystem = inTurn(options.askSystem ?? askGetaddrinfo);
  return async (name, signal) => {
    // RFC 6761, 6.3: such names never leave the machine.
    if (/(?:^|\.)localhost\.?$/.test(name)) return LOOPBACK;
    const found = await askDns(name, signal, options.servers);
    return found.length > 0 ? found : askSystem(name, signal);
  };
};

const askDns = async (name: string, signal: AbortSignal, servers?: readonly string[]): Promise<readonly string[]> => {
  const resolver = new Resolver({ timeout: FETCH_DNS_TRY_MS, tries: 2 });
  if (servers !== undefined) resolver.setServers(servers);
  const cancel = (): void => resolver.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    const silence = answers.find((answer) => answer.status === 'rejected' && SILENCE.has(codeOf(answer.reason)));
    if (found.length === 0 && silence?.status === 'rejected') throw silence.reason;
    return found;
  } finally {
    signal.removeEventListener('abort', cancel);
  }
};

const codeOf = (error: unknown): string => String((error as NodeJS.ErrnoException).code);

const askGetaddrinfo = async (name: string): Promise<readonly string[]> => {
  const found = await lookup(name, { all: true });
  return found.map(({ address }) => address);
};

/** Names that can wait for the system's answer. Each caller has a deadline, so that more of them would only wait in vain. */
const NAMES_WAITING_MAX = 1000;

/** One name at a time. A caller that gives up is not asked for any more. */
const inTurn = (ask: (name: string) => Promise<readonly string[]>): NameLookup => {
  const full = (): Error => new Error('too many DNS lookups are queued');
  const turns = new SerialQueue({ maxWaiting: NAMES_WAITING_MAX, full });
  return (name, signal) => turns.run(() => ask(name), signal);
};
