// What is counted of a tunnel, in the word of its protocol.
import type { ShownProtocol } from '@tunnel/contract';
import { plural } from '../../ui/format.ts';

const WORDS: Readonly<Record<ShownProtocol, readonly [one: string, many: string, meaning: string]>> = {
  http: ['request', 'requests', 'HTTP requests'],
  tcp: ['connection', 'connections', 'Connections of visitors'],
  udp: ['session', 'sessions', 'Visitors that sent datagrams, each until it was silent'],
  p2p: ['session', 'sessions', 'Sessions of subscribers'],
};

export const visitsText = (protocol: ShownProtocol, count: number): string => {
  const [one, many] = WORDS[protocol];
  return plural(count, one, many);
};

export const visitsWord = (protocol: ShownProtocol): string => {
  const word = WORDS[protocol][1];
  return word.charAt(0).toUpperCase() + word.slice(1);
};

export const visitsMeaning = (protocol: ShownProtocol): string => WORDS[protocol][2];
