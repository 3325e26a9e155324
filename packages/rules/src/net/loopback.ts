// Detects host names and IP addresses of the local machine (loopback).
import { mappedV4, readV4, readV6 } from './address-groups.ts';

const LOCALHOST: ReadonlySet<string> = new Set(['localhost', 'localhost.']);

/**
 * Returns true for `localhost`, 127.0.0.0/8 and `::1`, also IPv4-mapped or in brackets. Every other name is rejected, even
 * `127.example.com`, because a resolver may return any address.
 */
export const isLoopbackHost = (host: string): boolean => {
  const plain = host.toLowerCase().replace(/^\[(.*)\]$/, '$1');
  if (LOCALHOST.has(plain)) return true;
  if (!plain.includes(':')) return isLoopbackV4(readV4(plain));
  // A zone is only meaningful on its machine, so the address is rejected.
  const groups = plain.includes('%') ? null : readV6(plain);
  if (groups === null) return false;
  return isLoopbackV4(mappedV4(groups)) || groups.every((group, index) => group === (index === 7 ? 1 : 0));
};

const isLoopbackV4 = (address: number): boolean => address !== -1 && address >>> 24 === 127;
