// DNS lookups for URLs of strangers, in which a hanging name server does not delay other lookups.
import { lookup, Resolver } from 'node:dns/promises';
import { SerialQueue } from '../async/serial.ts';

/** Timeout of the first query to a name server. The second query waits twice as long. */
const FETCH_DNS_TRY_MS = 1000;

/** Looks up the addresses of a name. May reject or settle late; callers have a deadline. */
export type NameLookup = (name: string, signal: AbortSignal) => Promise<readonly string[]>;

export interface NameLookupOptions {
  /** Name servers to query, with ports, instead of the system's. */
  readonly servers?: readonly string[];
  /** Resolves names that only the system knows: hosts file, search domains. */
  readonly askSystem?: (name: string) => Promise<readonly string[]>;
}

const LOOPBACK = ['127.0.0.1', '::1'];
/** Error codes of DNS lookups without an answer, as opposed to the answer that the name does not exist. */
const SILENCE = new Set(['ETIMEOUT', 'ECANCELLED']);

/**
 * dns.lookup uses one of two threads for names of the whole process and cannot be canceled. So DNS is queried directly, and the system only
 * after a negative answer, one name at a time, which leaves the other thread free.
 */
export const createNameLookup = (options: NameLookupOptions = {}): NameLookup => {
  const askSystem = inTurn(options.askSystem ?? askGetaddrinfo);
  return async (name, signal) => {
    // RFC 6761, 6.3: localhost names are never sent to DNS.
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

/** Maximum names queued for the system. Callers have a deadline, so more would wait in vain. */
const NAMES_WAITING_MAX = 1000;

/** Resolves one name at a time. Names of callers that gave up are skipped. */
const inTurn = (ask: (name: string) => Promise<readonly string[]>): NameLookup => {
  const full = (): Error => new Error('too many DNS lookups are queued');
  const turns = new SerialQueue({ maxWaiting: NAMES_WAITING_MAX, full });
  return (name, signal) => turns.run(() => ask(name), signal);
};
